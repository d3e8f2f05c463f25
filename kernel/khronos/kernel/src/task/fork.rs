//! New processes and threads: `clone` and its kin.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use super::process::{self, Process};
use super::thread::{self, Thread};
use super::user::{self, User};
use super::{sched, signal};
use crate::arch::frame::Frame;
use crate::call::errno::{Errno, Result};
use crate::mm::user as memory;
use crate::sync::wait::Patience;
use crate::watch::counters::{Event, count};

/// Flags of `clone`.
#[allow(missing_docs, reason = "Linux' names")]
pub mod flags {
    pub const VM: u64 = 0x100;
    pub const VFORK: u64 = 0x4000;
    pub const THREAD: u64 = 0x10000;
    pub const SETTLS: u64 = 0x80000;
    pub const PARENT_SETTID: u64 = 0x10_0000;
    pub const CHILD_CLEARTID: u64 = 0x20_0000;
    pub const CHILD_SETTID: u64 = 0x100_0000;
}

/// The initial state of the new thread, beside the state of its creator.
pub struct Begin {
    /// See [`flags`].
    pub flags: u64,
    /// Its stack; 0: the same address as its maker's.
    pub stack: u64,
    /// Where its maker finds its number.
    pub parent_number: u64,
    /// The address to which the thread's number is written for the thread itself, and the address
    /// that is cleared at its end.
    pub child_number: u64,
    /// Its thread-local storage.
    pub storage: u64,
}

/// Makes a thread of the running process, or a process with one thread, whose call returns 0;
/// returns its number.
pub fn clone(frame: &Frame, begin: &Begin) -> Result<u64> {
    let this = user::current().ok_or(Errno::INVALID)?;
    let number = thread::next_number();
    let is_thread = begin.flags & flags::THREAD != 0;
    if is_thread && begin.flags & flags::VM == 0 {
        return Err(Errno::INVALID);
    }
    let process = if is_thread { this.process.clone() } else { copy(this, number, begin)? };
    let user = User::new(process.clone(), number, Some(this));
    if begin.flags & flags::SETTLS != 0 {
        user.fs_base.store(begin.storage, Ordering::Relaxed); // Relaxed, both: not shared yet
    }
    if begin.flags & flags::CHILD_CLEARTID != 0 {
        user.clear_when_over.store(begin.child_number, Ordering::Relaxed);
    }
    let mut copy = frame.clone();
    copy.rax = 0;
    if begin.stack != 0 {
        copy.rsp = begin.stack;
    }
    if begin.flags & flags::PARENT_SETTID != 0 {
        memory::write(begin.parent_number, &number)?;
    }
    if begin.flags & flags::CHILD_SETTID != 0 {
        let place = begin.child_number;
        if begin.flags & flags::VM != 0 {
            memory::write(place, &number)?;
        } else {
            process.space().write(place, &number.to_le_bytes())?;
        }
    }
    let thread = thread::for_user(user, &copy);
    if !is_thread {
        process.publish();
    }
    begin_thread(&process, &thread);
    if begin.flags & flags::VFORK != 0 {
        wait_for_space(&process);
    }
    Ok(u64::from(number))
}

/// A process like the running one.
fn copy(this: &User, number: u32, begin: &Begin) -> Result<Arc<Process>> {
    count(Event::Forks);
    let space = this.process.space();
    let space = if begin.flags & flags::VM != 0 { space } else { Arc::new(space.fork()?) };
    let process = Process::new(number, Some(&this.process), space);
    // Relaxed: not shared yet.
    process.borrows_space.store(begin.flags & flags::VFORK != 0, Ordering::Relaxed);
    Ok(process)
}

/// Adds the thread to the process, and starts it.
pub fn begin_thread(process: &Arc<Process>, thread: &Arc<Thread>) {
    process.live_threads.fetch_add(1, Ordering::Relaxed); // Relaxed: a count; this thread is one
    process.relations.lock().threads.push(thread.clone());
    // One that was sent to all threads a moment ago has not reached this one.
    if process.ending.lock().is_some() {
        signal::send_to_thread(thread, signal::SIGKILL);
    }
    sched::wake(thread);
}

fn wait_for_space(child: &Process) {
    // Acquire: partner of the Release in `give_space_back`.
    let is_given_back = || (!child.borrows_space.load(Ordering::Acquire)).then_some(());
    // Signals wait, as under Linux, unless they end the process: then the child goes on alone.
    let patience = Patience { signals: false, deadline: None };
    let ended = child.space_given_back.wait(patience, is_given_back);
    debug_assert!(ended.is_ok(), "nothing else ends the wait");
}

/// The first process, which runs the program at this path.
pub fn first(
    path: &[u8],
    arguments: &[alloc::vec::Vec<u8>],
    environment: &[alloc::vec::Vec<u8>],
) -> Result<Arc<Process>> {
    let image = super::exec::load(None, path, arguments, environment)?;
    let process = Process::new(1, None, image.space.clone());
    *process.program.lock() = image.names.clone();
    let console =
        crate::vfs::path::open(None, b"/dev/console", crate::vfs::file::flags::READ_WRITE, 0)?;
    for number in 0..3 {
        process.files.put(console.clone(), false, number)?;
    }
    crate::vfs::console::set_foreground(process.number);
    process.publish();
    let user = User::new(process.clone(), 1, None);
    let thread = thread::for_user(user, &image.frame);
    begin_thread(&process, &thread);
    Ok(process)
}

/// The number of a child that has ended, its exit status, and its parent.
pub fn wait(which: i64, mayhap: bool, keep: bool) -> Result<Option<(u32, process::Status)>> {
    let this = process::current().ok_or(Errno::NO_CHILD)?;
    let group = this.group.load(Ordering::Relaxed); // Relaxed: a setting
    let is_wanted = |child: &Process| match which {
        -1 => true,
        0 => child.group.load(Ordering::Relaxed) == group, // Relaxed: a setting
        number if number > 0 => i64::from(child.number) == number,
        group => i64::from(child.group.load(Ordering::Relaxed)) == -group, // Relaxed: a setting
    };
    let look = || -> Option<Result<(u32, process::Status)>> {
        let children = this.relations.lock().children.clone();
        let mut has_any = false;
        for child in children.iter().filter(|child| is_wanted(child)) {
            has_any = true;
            if let Some(status) = child.relations.lock().status {
                return Some(Ok((child.number, status)));
            }
        }
        (!has_any).then_some(Err(Errno::NO_CHILD))
    };
    let found = if mayhap {
        match look() {
            None => return Ok(None),
            Some(found) => found?,
        }
    } else {
        this.children_changed.wait(Patience::SIGNALS, look)??
    };
    if !keep {
        let mut relations = this.relations.lock();
        let place = relations.children.iter().position(|child| child.number == found.0);
        let child = place.map(|place| relations.children.remove(place));
        drop(relations);
        child.ok_or(Errno::NO_CHILD)?.withdraw();
    }
    Ok(Some(found))
}

//! Calls on signals.

use core::sync::atomic::Ordering;

use super::Arguments;
use super::errno::{Errno, RESTART, Result};
use super::files::this;
use crate::arch::frame::Frame;
use crate::mm::user as memory;
use crate::sync::wait::{Patience, WaitQueue};
use crate::task::signal::{self, Action, MOST, SIGKILL, SIGSTOP, bit};
use crate::task::thread::Thread;
use crate::task::user::{self, User};
use crate::task::{process, sigframe};

fn user_part() -> Result<&'static User> {
    user::current().ok_or(Errno::NO_PROCESS)
}

fn check(number: u64) -> Result<u32> {
    if (1..=u64::from(MOST)).contains(&number) { Ok(number as u32) } else { Err(Errno::INVALID) }
}

pub fn sigaction(_: &mut Frame, [number, new, old, ..]: Arguments) -> Result<u64> {
    let number = check(number)?;
    let new: Option<[u64; 4]> = if new == 0 { None } else { Some(memory::read(new)?) };
    if new.is_some() && matches!(number, SIGKILL | SIGSTOP) {
        return Err(Errno::INVALID);
    }
    let mut actions = this()?.actions.lock();
    let action = actions.of(number);
    let before = *action;
    if let Some([handler, flags, restorer, mask]) = new {
        *action = Action { handler, flags, restorer, mask };
    }
    drop(actions);
    if old != 0 {
        memory::write(old, &[before.handler, before.flags, before.restorer, before.mask])?;
    }
    Ok(0)
}

pub fn sigprocmask(_: &mut Frame, [how, new, old, ..]: Arguments) -> Result<u64> {
    let user = user_part()?;
    let before = user.mask.load(Ordering::Relaxed); // Relaxed, both: the thread's own
    if new != 0 {
        let set: u64 = memory::read(new)?;
        let mask = match how {
            0 => before | set,
            1 => before & !set,
            2 => set,
            _ => return Err(Errno::INVALID),
        };
        user.mask.store(mask & !(bit(SIGKILL) | bit(SIGSTOP)), Ordering::Relaxed);
    }
    if old != 0 {
        memory::write(old, &before)?;
    }
    Ok(0)
}

pub fn sigpending(_: &mut Frame, [to, ..]: Arguments) -> Result<u64> {
    let user = user_part()?;
    // Relaxed: of a moment
    let pending =
        user.pending.load(Ordering::Relaxed) | user.process.pending.load(Ordering::Relaxed);
    memory::write(to, &pending)?;
    Ok(0)
}

pub fn sigreturn(frame: &mut Frame, _: Arguments) -> Result<u64> {
    let user = user_part()?;
    if sigframe::leave(frame, user).is_err() {
        signal::raise(SIGKILL); // there is nothing to which it could return
    }
    Ok(0)
}

/// Sleeps until a signal comes.
fn wait() -> Result<u64> {
    let nobody = WaitQueue::new();
    nobody.wait(Patience::SIGNALS, || None).map_err(|_| Errno::INTERRUPTED)
}

pub fn pause(_: &mut Frame, _: Arguments) -> Result<u64> {
    wait()
}

pub fn sigsuspend(_: &mut Frame, [set, ..]: Arguments) -> Result<u64> {
    let user = user_part()?;
    let mask: u64 = memory::read(set)?;
    // Relaxed, both: the thread's own.
    let before = user.mask.swap(mask & !(bit(SIGKILL) | bit(SIGSTOP)), Ordering::Relaxed);
    user.mask_after.store(before, Ordering::Relaxed);
    wait()
}

pub fn sigaltstack(_: &mut Frame, [new, old, ..]: Arguments) -> Result<u64> {
    const OFF: u64 = 2;
    let user = user_part()?;
    // Relaxed, all: the thread's own.
    let [start, bytes] = user.signal_stack.each_ref().map(|word| word.load(Ordering::Relaxed));
    let new: Option<[u64; 3]> = if new == 0 { None } else { Some(memory::read(new)?) };
    if old != 0 {
        memory::write(old, &[start, if bytes == 0 { OFF } else { 0 }, bytes])?;
    }
    if let Some([start, flags, bytes]) = new {
        let bytes = if flags & OFF != 0 { 0 } else { bytes };
        user.signal_stack[0].store(start, Ordering::Relaxed);
        user.signal_stack[1].store(bytes, Ordering::Relaxed);
    }
    Ok(0)
}

pub fn kill(_: &mut Frame, [which, number, ..]: Arguments) -> Result<u64> {
    let which = i64::from(which as i32);
    let number = if number == 0 { None } else { Some(check(number)?) };
    let send = |process: &alloc::sync::Arc<process::Process>| {
        if let Some(number) = number {
            signal::send(process, number);
        }
    };
    let group = match which {
        1.. => {
            send(&process::find(which as u32).ok_or(Errno::NO_PROCESS)?);
            return Ok(0);
        }
        0 => this()?.group.load(Ordering::Relaxed), // Relaxed: a setting
        -1 => {
            let own = this()?.number;
            let others = process::all();
            others.iter().filter(|other| other.number != 1 && other.number != own).for_each(send);
            return Ok(0);
        }
        _ => (-which) as u32,
    };
    // Relaxed: a setting
    let is_one = |process: &process::Process| process.group.load(Ordering::Relaxed) == group;
    let all = process::all();
    let sent =
        all.iter().filter(|process| is_one(process)).inspect(|process| send(process)).count();
    if sent == 0 { Err(Errno::NO_PROCESS) } else { Ok(0) }
}

pub fn tgkill(frame: &mut Frame, [_, thread, number, ..]: Arguments) -> Result<u64> {
    tkill(frame, [thread, number, 0, 0, 0, 0])
}

pub fn tkill(_: &mut Frame, [thread, number, ..]: Arguments) -> Result<u64> {
    let is_one = |other: &&alloc::sync::Arc<Thread>| u64::from(other.number) == thread;
    let find =
        |process: &process::Process| process.relations.lock().threads.iter().find(is_one).cloned();
    let target = find(this()?)
        .or_else(|| process::all().iter().find_map(|process| find(process)))
        .ok_or(Errno::NO_PROCESS)?;
    if number != 0 {
        signal::send_to_thread(&target, check(number)?);
    }
    Ok(0)
}

/// The result of a sleep that a signal has ended. Such a call is not restarted.
pub fn ended_by_signal(error: Errno) -> Errno {
    if error == RESTART { Errno::INTERRUPTED } else { error }
}

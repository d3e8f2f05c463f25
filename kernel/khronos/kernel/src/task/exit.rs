//! The end of threads and processes.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use super::process::{self, Process, Status};
use super::{sched, signal, thread, user};
use crate::mm::user as memory;
use crate::sync::futex;

/// Ends the running process: this thread now, and all its other threads.
pub fn end_process(status: Status) -> ! {
    if let Some(process) = process::current() {
        process.ending.lock().get_or_insert(status);
        let threads = process.relations.lock().threads.clone();
        for thread in threads.iter().filter(|other| other.number != thread::current().number) {
            signal::send_to_thread(thread, signal::SIGKILL);
        }
    }
    end_thread(status)
}

/// Ends the running thread, and its process if it is the last one. The process then has this
/// status, unless it was given another one before.
pub fn end_thread(status: Status) -> ! {
    if let Some(user) = user::current() {
        clear(user);
        let process = &user.process;
        let this = thread::current().number;
        process.relations.lock().threads.retain(|thread| thread.number != this);
        user.change_space(None);
        // AcqRel: each thread's end is partner of the last one's, and of the Acquire in `exec`: no
        // CPU uses the space by then, which both give up.
        let is_last = process.live_threads.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last {
            let status = *process.ending.lock().get_or_insert(status);
            finish(process, status);
        }
    }
    sched::end()
}

/// Notifies the threads that wait for the thread's end by its memory.
fn clear(user: &user::User) {
    let place = user.clear_when_over.load(Ordering::Relaxed); // Relaxed: the thread's own
    if place != 0 && memory::write(place, &0u32).is_ok() {
        futex::wake(user.process.space().futex_key(place), !0, 1);
    }
}

/// Called when all threads of the process have ended: frees its files and its address space, and
/// notifies its parent.
fn finish(process: &Arc<Process>, status: Status) {
    process.set_alarm(0, 0);
    process.files.close_some(true);
    drop(process.set_space(None));
    process.give_space_back();
    assert!(process.number != 1, "the first process has ended: {status:?}");
    let init = process::find(1);
    let orphans = core::mem::take(&mut process.relations.lock().children);
    if let Some(init) = &init {
        for orphan in orphans {
            orphan.relations.lock().parent = Arc::downgrade(init);
            init.relations.lock().children.push(orphan);
        }
        init.children_changed.wake_all();
    }
    let mut relations = process.relations.lock();
    relations.status = Some(status);
    let parent = relations.parent.upgrade();
    drop(relations);
    if let Some(parent) = parent {
        if signal::ignores_children(&parent) {
            parent.relations.lock().children.retain(|child| !Arc::ptr_eq(child, process));
            process.withdraw();
        }
        signal::send(&parent, signal::SIGCHLD);
        parent.children_changed.wake_all();
    }
}

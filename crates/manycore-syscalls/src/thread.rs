//! The calling thread's activity: words of its own, zero in a new thread.
//!
//! A thread whose call is being moved may be interrupted by a signal handler that makes calls:
//! those are executed in place, whatever the thread's activity. Between `vfork` and the child's
//! `exec` two processes run on the same memory, one after the other, as if they were one thread.
//! The child's calls are executed in place, and do not change the table of descriptors, which is
//! the parent's.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use manycore::sync::thread;
use manycore_interpose::process;
use manycore_stats::syscalls::Outcome;

use crate::in_flight::InFlight;

/// A call of the thread is being moved.
const BUSY: u64 = 1;
/// The thread has called `vfork`; the upper half has the process that did.
const FORKED: u64 = 2;
const PROCESS: u32 = 32;

fn words() -> &'static Cell<[u64; 2]> {
    &thread::local().words
}

/// The thread's activity. The other word, which belongs to [`swap_kept`], keeps a value that a
/// signal handler may leave there.
fn doing() -> &'static Cell<u64> {
    let words: &Cell<[u64]> = words();
    &words.as_slice_of_cells()[0]
}

fn set(doing_now: u64) {
    doing().set(doing_now);
}

/// Whether the thread's calls may be moved, and its descriptors noted; if not, why.
#[inline]
pub fn check() -> Result<(), Outcome> {
    match doing().get() {
        0 => Ok(()),
        doing => occupied(doing),
    }
}

/// Whether this is a child of `vfork`, on its parent's memory.
pub fn shares_memory() -> bool {
    check() == Err(Outcome::SharedMemory)
}

#[cold]
fn occupied(doing: u64) -> Result<(), Outcome> {
    if doing & FORKED != 0 {
        if u64::from(process::id()) != doing >> PROCESS {
            return Err(Outcome::SharedMemory);
        }
        // The child has its own memory now, or has ended: this is the parent.
        set(doing & BUSY);
    }
    if doing & BUSY == 0 { Ok(()) } else { Err(Outcome::Handler) }
}

/// The thread is about to call `vfork`.
pub extern "C" fn forks() {
    let doing = doing().get();
    if doing & FORKED == 0 {
        set(doing & BUSY | FORKED | u64::from(process::id()) << PROCESS);
    }
}

/// Removes the state of an earlier thread on the memory of a new thread.
pub fn begins() {
    words().set([0; 2]);
}

/// Called in the child of a fork.
pub fn forked() {
    // A handler that interrupted a call may have forked: then the child's thread is still in that
    // handler.
    words().set([doing().get() & BUSY, 0]);
}

/// Notes the thread's call that is being moved.
#[inline]
pub fn begin(call: &mut InFlight) {
    thread::local().extension.set(core::ptr::from_mut(call).cast());
    set(doing().get() | BUSY);
}

/// The thread's call is back.
#[inline]
pub fn end() {
    set(doing().get() & !BUSY);
}

/// The thread's call that is being moved, if there is one.
pub fn in_flight() -> Option<*mut InFlight> {
    (doing().get() & BUSY != 0).then(|| thread::local().extension.get().cast())
}

/// Stores a number for the thread, 0 for none, and returns the old one. The thread's own handlers
/// cannot interrupt this, so each number is returned once.
pub fn swap_kept(number: u64) -> u64 {
    let kept = words().as_ptr().cast::<u64>().wrapping_add(1);
    // SAFETY: the word is this thread's, aligned, and valid as long as the thread; only this
    // function reads or writes it, as an atomic.
    let kept = unsafe { AtomicU64::from_ptr(kept) };
    // Relaxed: only the thread itself and its handlers meet here.
    kept.swap(number, Ordering::Relaxed)
}

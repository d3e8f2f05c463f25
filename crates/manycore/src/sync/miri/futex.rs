//! Waiting on a word until another thread changes it, by libc's `syscall`: the interpreter knows
//! that function's futexes.

use super::atomic::{AtomicU32, AtomicU64};
use super::hint;
use crate::sync::{Deadline, Woken};

/// Sleeps while `word` holds `expected`, until a [`wake`] or the deadline.
pub fn wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Woken {
    let mut operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    let until =
        deadline.map(|d| libc::timespec { tv_sec: d.seconds, tv_nsec: i64::from(d.nanoseconds) });
    if deadline.is_some_and(|d| d.wall) {
        operation |= libc::FUTEX_CLOCK_REALTIME;
    }
    let timeout = until.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    let others = (core::ptr::null_mut::<u32>(), libc::FUTEX_BITSET_MATCH_ANY as u32);
    // SAFETY: the word and the timespec, which are read only, outlive the call.
    let result = unsafe {
        let word = word.as_ptr();
        libc::syscall(libc::SYS_futex, word, operation, expected, timeout, others.0, others.1)
    };
    // SAFETY: `__errno_location` returns the address of the calling thread's own number.
    let error = || unsafe { *libc::__errno_location() };
    if result == -1 && error() == libc::ETIMEDOUT { Woken::TimedOut } else { Woken::Perhaps }
}

/// [`wait`] on the lower half of a word: returns at once, as if woken without cause. The
/// interpreter treats the futex's read of that half as an access of the program, and requires all
/// accesses to a word to have one size.
pub fn wait_low(_word: &AtomicU64, _expected: u32, deadline: Option<Deadline>) -> Woken {
    hint::yield_now();
    let passed = deadline.is_some_and(|deadline| deadline.has_passed());
    if passed { Woken::TimedOut } else { Woken::Perhaps }
}

/// Wakes at most `count` threads that sleep on `word`, whose memory may be gone.
pub fn wake(word: *const AtomicU32, count: u32) {
    let count = count.min(i32::MAX as u32);
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the address is a key, and the memory behind it is not read.
    unsafe { libc::syscall(libc::SYS_futex, word.cast_mut().cast::<u32>(), operation, count) };
}

/// [`wake`] for [`wait_low`], in which no thread sleeps.
pub fn wake_low(_word: *const AtomicU64, _count: u32) {}

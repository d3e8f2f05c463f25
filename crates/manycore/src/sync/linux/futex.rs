//! Waiting on a word until another thread changes it, by the futex system call.

use syscalls::{Errno, Sysno, raw_syscall};

use super::super::{Deadline, Woken};
use super::atomic::{AtomicU32, AtomicU64};

/// Sleeps while `word` holds `expected`, until a [`wake`] or the deadline.
///
/// The kernel compares and goes to sleep in one step with regard to a `wake` of the same word. The
/// call may also return without a cause, so the caller reads the word again.
pub fn wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Woken {
    sleep(word, expected, deadline)
}

/// Does the same as [`wait`], on the lower half of a word; [`wake_low`] wakes the thread.
pub fn wait_low(word: &AtomicU64, expected: u32, deadline: Option<Deadline>) -> Woken {
    sleep(low_half(word), expected, deadline)
}

/// Only the kernel reads `word`, which outlives the call.
fn sleep(word: *const AtomicU32, expected: u32, deadline: Option<Deadline>) -> Woken {
    let mut operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    let until =
        deadline.map(|d| libc::timespec { tv_sec: d.seconds, tv_nsec: i64::from(d.nanoseconds) });
    if deadline.is_some_and(|d| d.wall) {
        operation |= libc::FUTEX_CLOCK_REALTIME;
    }
    let timeout = until.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: the kernel reads the word and the timespec, which both outlive the call, and writes
    // nothing.
    let result = unsafe {
        raw_syscall!(
            Sysno::futex,
            word,
            operation,
            expected,
            timeout,
            0,
            libc::FUTEX_BITSET_MATCH_ANY
        )
    };
    // The kernel refuses a deadline before 1970 as invalid, but such a deadline has passed, too.
    let passed = result == failed(Errno::ETIMEDOUT)
        || (deadline.is_some() && result == failed(Errno::EINVAL));
    if passed { Woken::TimedOut } else { Woken::Perhaps }
}

/// Wakes at most `count` threads that sleep on `word`.
///
/// Takes a pointer because the word's memory may have been freed: a thread that waits on the word
/// may have seen it change, returned, and freed it before this call. The kernel then finds no
/// thread that sleeps there, or an unrelated one, which has to expect to be woken without a cause.
#[cold]
pub fn wake(word: *const AtomicU32, count: u32) {
    // The kernel takes a signed number, and wakes one thread if that is negative.
    let count = count.min(i32::MAX as u32);
    // SAFETY: FUTEX_WAKE uses the address as a key and does not read the memory behind it.
    unsafe {
        raw_syscall!(Sysno::futex, word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, count);
    }
}

/// [`wake`] for [`wait_low`].
#[cold]
pub fn wake_low(word: *const AtomicU64, count: u32) {
    wake(low_half(word), count);
}

fn low_half(word: *const AtomicU64) -> *const AtomicU32 {
    word.cast::<AtomicU32>().wrapping_add(usize::from(cfg!(target_endian = "big")))
}

fn failed(errno: Errno) -> usize {
    (errno.into_raw() as isize).wrapping_neg() as usize
}

//! Deadlines as programs give them.

use libc::{clockid_t, timespec};
use manycore::sync::Deadline;

/// Whether the clock is one that a timed wait can name.
pub fn is_supported(clock: clockid_t) -> bool {
    clock == libc::CLOCK_REALTIME || clock == libc::CLOCK_MONOTONIC
}

/// A deadline, or `None` if the nanoseconds are out of range (`EINVAL`).
///
/// # Safety
///
/// `until` points to a timespec.
pub unsafe fn deadline(clock: clockid_t, until: *const timespec) -> Option<Deadline> {
    // SAFETY: `until` leads to a time (contract of this function).
    let until = unsafe { &*until };
    let nanoseconds = u32::try_from(until.tv_nsec).ok().filter(|ns| *ns < 1_000_000_000)?;
    Some(Deadline { wall: clock == libc::CLOCK_REALTIME, seconds: until.tv_sec, nanoseconds })
}

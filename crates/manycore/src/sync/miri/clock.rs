//! Time, which is the interpreter's own: it passes with the steps of the program.

use core::time::Duration;

use super::atomic::{Ordering, fence};

/// Now, in nanoseconds.
pub fn now() -> u64 {
    let now = super::monotonic();
    now.as_secs() * 1_000_000_000 + u64::from(now.subsec_nanos())
}

/// Whether `ticks` have passed since [`now`] was `start`: for a loop that polls until then at most.
pub fn has_passed(start: u64, ticks: u64) -> bool {
    now().wrapping_sub(start) > ticks
}

/// Ticks in nanoseconds, which they are.
pub fn nanoseconds(ticks: u64) -> u64 {
    ticks
}

/// [`now`], between two fences.
pub fn ordered() -> u64 {
    // SeqCst, both: this thread's accesses stay on their sides of the reading. Partner: the fences
    // of threads that compare their times with this one.
    fence(Ordering::SeqCst);
    let ticks = now();
    fence(Ordering::SeqCst); // SeqCst: its second half
    ticks
}

/// The largest difference between two CPUs' counters: there is one clock. Not zero, so that threads
/// that wait for it do wait.
pub fn boundary() -> Option<u64> {
    Some(Duration::from_micros(10).as_nanos() as u64)
}

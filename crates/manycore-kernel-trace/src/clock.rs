//! The clock of all that is seen: CLOCK_MONOTONIC, which the BPF programs read, too.

use rustix::time::{ClockId, clock_gettime};

/// The time in nanoseconds.
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

//! Time in cycles of the simulated core.

use manycore_sim::backend;

use super::super::Deadline;

/// Now, in ticks: the core's time-stamp counter, which may be ahead of others by the machine's
/// skew.
pub fn now() -> u64 {
    backend::clock()
}

/// Whether `ticks` have passed since [`now`] was `start`. A loop that polls until then can be
/// parked until then.
pub fn has_passed(start: u64, ticks: u64) -> bool {
    backend::has_passed(start, ticks)
}

/// Ticks in nanoseconds.
pub fn nanoseconds(ticks: u64) -> u64 {
    (ticks as f64 / backend::counter_ghz()) as u64
}

/// Nanoseconds in ticks.
pub fn ticks(nanoseconds: u64) -> u64 {
    (nanoseconds as f64 * backend::counter_ghz()) as u64
}

/// [`now`]: a simulated CPU does one thing after the other.
pub fn ordered() -> u64 {
    now()
}

/// Not measured: the machine's model says. None where schedules are explored.
pub fn boundary() -> Option<u64> {
    backend::boundary()
}

/// A deadline in nanoseconds since the simulation began, which is the start of both clocks.
pub(super) fn moment(deadline: &Deadline) -> u64 {
    let seconds = u64::try_from(deadline.seconds).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::from(deadline.nanoseconds))
}

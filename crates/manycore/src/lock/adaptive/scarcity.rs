//! Whether CPUs are oversubscribed, and when a thread last parked voluntarily, so that others run:
//! one state for all locks of a process. These are hints: of two updates at the same time one may
//! be lost.

use super::learned::{LastPark, Oversubscription, Spins};
use crate::sync::{cpu, tuning};

/// For how long CPUs count as oversubscribed after a sign of it, in ns, ...
const OVERSUBSCRIBED: u32 = if cfg!(loom) { u32::MAX } else { 10_000_000 };
/// ... and where waiters would queue: much longer than a time slice, because a hand-over to a
/// thread that does not run delays the others by a time slice.
const OVERSUBSCRIBED_BEFORE_QUEUE: u32 = if cfg!(loom) { u32::MAX } else { 100_000_000 };
/// If there was no park elsewhere for this many intervals, the CPU whose thread parked last has
/// another one park.
const INTERVALS_OF_OTHERS: u64 = 4;
/// How often a sleeper is woken although enough threads are awake, in ns.
const ROTATION: u64 = 100_000;

fn oversubscription() -> Oversubscription {
    Oversubscription(tuning::oversubscription())
}

fn last_park() -> LastPark {
    LastPark(tuning::last_park())
}

/// There was a sign of it.
pub(super) fn notice(now: u64) {
    tuning::set_oversubscription(oversubscription().with_sign(now).0);
}

/// Whether there was a sign that no thread has found to be outdated.
#[inline]
pub(in crate::lock) fn has_sign() -> bool {
    oversubscription().has_sign()
}

/// Whether there was a sign of late.
pub(super) fn is_oversubscribed(now: u64) -> bool {
    let state = oversubscription();
    let few = cpu::count() <= tuning::few_cpus();
    let is_recent =
        state.since_sign(now) < if few { OVERSUBSCRIBED } else { OVERSUBSCRIBED_BEFORE_QUEUE };
    if state.has_sign() && !is_recent {
        // Otherwise it would look recent again when the counter wraps.
        tuning::set_oversubscription(state.without_sign().0);
    }
    state.has_sign() && is_recent
}

/// Whether a newcomer is the one that parks in this interval.
pub(super) fn parks_voluntarily(now: u64, spins: Spins) -> bool {
    let last = last_park();
    let length = spins.park_interval(oversubscription());
    let since = last.since(now);
    // Under loom, whose executions have to be repeatable, always.
    let is_over = cfg!(loom) || since > length;
    if !is_over || !is_oversubscribed(now) {
        return false;
    }
    let cpu = cpu::here();
    let due = cfg!(loom) || last.was_elsewhere(cpu) || since > INTERVALS_OF_OTHERS * length;
    if due {
        tuning::set_last_park(LastPark::new(now, cpu).0);
    }
    due
}

/// Records that a thread has parked voluntarily, and was woken after this long.
pub(super) fn parked_voluntarily_for(waited: u64) {
    tuning::set_oversubscription(oversubscription().after_voluntary_park(waited).0);
}

/// Whether it is time that one that sleeps changes places with one that polls.
pub(super) fn rotates(now: u64) -> bool {
    let is_due = last_park().since(now) > ROTATION;
    if is_due {
        tuning::set_last_park(LastPark::new(now, cpu::here()).0);
    }
    is_due
}

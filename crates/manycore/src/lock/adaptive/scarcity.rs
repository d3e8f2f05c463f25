//! Whether CPUs are scarce, and when a thread last made room for others: one state for all locks of
//! a process. These are hints: of two updates at the same time one may be lost.

use super::learned::{Crowd, Spins, Turn};
use crate::sync::{cpu, tuning};

/// For how long there is a crowd after a sign of it, in ns, ...
const CROWDED: u32 = if cfg!(loom) { u32::MAX } else { 10_000_000 };
/// ... and where waiters would queue: much longer than the time slice for which a
/// hand-over to a thread that does not run may hold up the others.
const CROWDED_BEFORE_QUEUE: u32 = if cfg!(loom) { u32::MAX } else { 100_000_000 };
/// The CPU that made room last does so again after this many turns without another.
const TURNS_OF_OTHERS: u64 = 4;
/// How often one that sleeps is woken although enough are awake, in ns.
const ROTATION: u64 = 100_000;

fn crowd() -> Crowd {
    Crowd(tuning::crowd())
}

fn last_turn() -> Turn {
    Turn(tuning::turn())
}

/// There was a sign of it.
pub(super) fn notice(now: u64) {
    tuning::set_crowd(crowd().with_sign(now).0);
}

/// Whether there was a sign that nobody has found to be old.
#[inline]
pub(in crate::lock) fn has_sign() -> bool {
    crowd().has_sign()
}

/// Whether there was a sign of late.
pub(super) fn is_crowded(now: u64) -> bool {
    let crowd = crowd();
    let few = cpu::count() <= tuning::few_cpus();
    let is_recent = crowd.since_sign(now) < if few { CROWDED } else { CROWDED_BEFORE_QUEUE };
    if crowd.has_sign() && !is_recent {
        // Or it would look recent again when the counter wraps.
        tuning::set_crowd(crowd.without_sign().0);
    }
    crowd.has_sign() && is_recent
}

/// Whether a newcomer is the one that goes to sleep in this turn.
pub(super) fn makes_room(now: u64, spins: Spins) -> bool {
    let last = last_turn();
    let length = spins.turn(crowd());
    let since = last.since(now);
    // Under loom, whose executions have to be repeatable, always.
    let is_over = cfg!(loom) || since > length;
    if !is_over || !is_crowded(now) {
        return false;
    }
    let cpu = cpu::here();
    let due = cfg!(loom) || last.was_elsewhere(cpu) || since > TURNS_OF_OTHERS * length;
    if due {
        tuning::set_turn(Turn::new(now, cpu).0);
    }
    due
}

/// A thread has made room, and was woken after this long.
pub(super) fn room_was_made_for(waited: u64) {
    tuning::set_crowd(crowd().with_room_made_for(waited).0);
}

/// Whether it is time that one that sleeps changes places with one that polls.
pub(super) fn rotates(now: u64) -> bool {
    let is_due = last_turn().since(now) > ROTATION;
    if is_due {
        tuning::set_turn(Turn::new(now, cpu::here()).0);
    }
    is_due
}

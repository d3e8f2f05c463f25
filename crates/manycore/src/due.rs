//! When a log is due to be drained, and whether a thread is about to do so: for all structures that
//! defer work.
//!
//! A thread that finds it due claims it first. So the other threads neither drain as well nor go to
//! the lock to find it taken; on a large machine they would all do so at the same moment.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{CachePadded, clock, mutation, order};

/// Instead of a time: a thread is at work.
const CLAIMED: u64 = u64::MAX;

/// When it was last done.
pub(crate) struct Due(CachePadded<AtomicU64>);

/// The right to do it, which ends when this is dropped.
pub(crate) struct Claim<'a>(&'a Due);

impl Due {
    pub fn new() -> Self {
        Self(CachePadded(AtomicU64::new(0)))
    }

    /// The right to do it, if it was last done this many ticks ago, and no other thread is doing
    /// it.
    pub fn claim(&self, period: u64) -> Option<Claim<'_>> {
        let now = clock::now();
        // Relaxed: the compare-and-swap decides.
        let last = self.0.load(Ordering::Relaxed);
        if last == CLAIMED || now.saturating_sub(last) < period {
            return None;
        }
        let mark = if mutation!("due-unmarked") { now } else { CLAIMED };
        // Acquire: partner of the Release in `drop`: the last owner's lock is free. Relaxed on
        // failure: another thread has the right.
        let claimed = order!(Acquire, "due-claim");
        let taken = self.0.compare_exchange(last, mark, claimed, Ordering::Relaxed);
        taken.is_ok().then_some(Claim(self))
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // Release: partner of the Acquire in `claim`.
        self.0.0.store(clock::now(), order!(Release, "due-done"));
    }
}

//! What a deferred structure has counted.

use super::queue::Drained;

/// What was done to the structure so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// How often the log was drained.
    pub drains: u64,
    /// How often a thread that dropped an item drained its core's part of the queue.
    pub sweeps: u64,
    /// Entries that were found in it.
    pub entries: u64,
    /// The number of updates that were applied. The other entries stood for updates that cancelled
    /// each other.
    pub applied: u64,
    /// The number of items that were freed, without those that were removed inline.
    pub released: u64,
    /// Updates that were applied at once, and not logged.
    pub at_once: u64,
    /// The most entries that one drain found, that is, the greatest length of the log.
    pub entries_max: u64,
}

impl Statistics {
    pub(super) fn count(&mut self, Drained { entries, applied }: Drained) {
        self.entries += entries;
        self.applied += applied;
        self.entries_max = self.entries_max.max(entries);
    }

    /// Each number that adds up with its name: all but [`entries_max`](Self::entries_max).
    pub fn visit(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("drains", self.drains);
        visit("sweeps", self.sweeps);
        visit("entries", self.entries);
        visit("applied", self.applied);
        visit("released", self.released);
        visit("at_once", self.at_once);
    }
}

impl core::ops::Add for Statistics {
    type Output = Self;

    /// The sums of two structures; the most entries of a drain are the larger value of the two.
    fn add(self, other: Self) -> Self {
        Self {
            drains: self.drains + other.drains,
            sweeps: self.sweeps + other.sweeps,
            entries: self.entries + other.entries,
            applied: self.applied + other.applied,
            released: self.released + other.released,
            at_once: self.at_once + other.at_once,
            entries_max: self.entries_max.max(other.entries_max),
        }
    }
}

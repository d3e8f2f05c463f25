//! How many updates there are for each read, and whether deferring updates is worth its cost.

use crate::sync::atomic::{AtomicBool, Ordering};

/// After about this many reads, older counts no longer matter.
const MEMORY: u64 = 8;
/// If the lock is mostly taken, inline application is not tried for this many reads, and then tried
/// for some.
const PAUSE: u32 = 512;

/// Shares are of this.
const ALL: u64 = 1 << 10;

/// Updates are applied inline where there are fewer than this many for each read, see
/// [`Deferred::eager_below`](super::Deferred::eager_below): on two CPUs this many deferred updates
/// cost as much as a lock for each.
pub const EAGER_BELOW: u64 = 32;

/// Updates of late, and reads. Under the structure's lock.
pub(super) struct Ratio {
    /// The number of updates since the last read, and how many of them were applied inline.
    updates: u64,
    at_once: u64,
    /// Updates for each read in the mean, times [`MEMORY`].
    mean: u64,
    /// The number of the last [`ALL`] attempts that found the lock free.
    won: u64,
    /// For how many reads it is not tried.
    pause: u32,
}

impl Ratio {
    /// The initial ratio of a structure: it is assumed to be read rarely.
    pub const fn new() -> Self {
        Self { updates: 0, at_once: 0, mean: 1_000 * MEMORY, won: ALL, pause: 0 }
    }

    /// Counts updates that have come to the structure from the log.
    pub fn logged(&mut self, updates: u64) {
        self.updates += updates;
        // After a read the ratio would be at least this; and there may never be another read.
        self.mean = self.mean.max(self.updates);
    }

    /// Counts an update that was applied inline.
    pub fn applied_at_once(&mut self) {
        self.at_once += 1;
        self.logged(1);
    }

    /// Counts a read; `was_eager`: the updates since the last read were applied inline.
    pub fn read(&mut self, was_eager: bool) {
        self.mean = self.mean - self.mean.div_ceil(MEMORY) + self.updates;
        if was_eager && self.updates > 0 {
            self.won = self.won - self.won / MEMORY + ALL / MEMORY * self.at_once / self.updates;
            if self.won < ALL / 2 {
                (self.won, self.pause) = (ALL / 4 * 3, PAUSE);
            }
        }
        self.pause = self.pause.saturating_sub(1);
        (self.updates, self.at_once) = (0, 0);
    }

    /// Updates for each read.
    fn mean(&self) -> u64 {
        self.mean / MEMORY
    }
}

/// Whether updates are applied at once.
pub(super) struct Eager {
    now: AtomicBool,
    /// Updates are eager where there are fewer than this for each read.
    below: u64,
}

impl Eager {
    /// Eager where there are fewer than `updates` updates for each read.
    pub fn below(updates: u64) -> Self {
        Self { now: AtomicBool::new(Ratio::new().mean() < updates), below: updates }
    }

    #[inline]
    pub fn is(&self) -> bool {
        // Relaxed: steers what is right in either case.
        self.now.load(Ordering::Relaxed)
    }

    /// Called with the structure's lock.
    pub fn reconsider(&self, ratio: &Ratio) {
        let was_eager = self.is();
        // Between the two limits nothing is written, so that other CPUs keep the line.
        let limit = self.below.saturating_mul(1 + u64::from(was_eager));
        let is_eager = ratio.mean() < limit && ratio.pause == 0;
        if is_eager != was_eager {
            // Relaxed: as above.
            self.now.store(is_eager, Ordering::Relaxed);
        }
    }
}

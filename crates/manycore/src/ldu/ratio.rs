//! How many updates there are for each read, and whether it pays to put them off.

use crate::sync::atomic::{AtomicBool, Ordering};

/// After so many reads, or so, what was before them counts no more.
const MEMORY: u64 = 8;

/// Updates are applied at once where there are fewer than so many for each read, see [`Deferred::eager_below`](super::Deferred::eager_below). On two CPUs that is
/// faster than the log up to thirty and more; with 120 simulated ones the log is ahead by a tenth from three on.
pub const EAGER_BELOW: u64 = 4;

/// Updates of late, and reads. Under the structure's lock.
pub(super) struct Ratio {
    /// Updates since the last read.
    updates: u64,
    /// Updates for each read in the mean, times [`MEMORY`].
    mean: u64,
}

impl Ratio {
    /// Of a structure of which nothing is known: it is taken to be read seldom.
    pub const fn new() -> Self {
        Self { updates: 0, mean: 1_000 * MEMORY }
    }

    /// So many more updates have come to the structure.
    pub fn updated(&mut self, updates: u64) {
        self.updates += updates;
        // It would be at least that after a read; and it may be that none comes any more.
        self.mean = self.mean.max(self.updates);
    }

    /// It was read once more, after all updates so far.
    pub fn read(&mut self) {
        self.mean = self.mean - self.mean.div_ceil(MEMORY) + self.updates;
        self.updates = 0;
    }

    /// Updates for each read.
    fn mean(&self) -> u64 {
        self.mean / MEMORY
    }
}

/// Whether updates are applied at once.
pub(super) struct Eager {
    now: AtomicBool,
    /// They are, where there are fewer for each read.
    below: u64,
}

impl Eager {
    /// Where there are fewer than so many updates for each read.
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
        // Between the two limits all stays as it is, so that others need not fetch the line each time.
        let is_eager = ratio.mean() < self.below.saturating_mul(1 + u64::from(was_eager));
        if is_eager != was_eager {
            // Relaxed: as above.
            self.now.store(is_eager, Ordering::Relaxed);
        }
    }
}

//! The CPUs' own counters, and the largest difference between them.
//!
//! # Source
//!
//! Kashyap, Min, Kim & Kim: A Scalable Ordering Primitive for Multicore Machines. EuroSys 2018.
//!
//! # Idea
//!
//! The counters of two CPUs run equally fast but may have been started at different times, and no
//! instruction tells by how much they differ. But one CPU can send its counter's value to another,
//! which compares it with its own. The difference is the offset plus the time of the message, so it
//! is never less than the offset. The largest of these differences, over all pairs and both
//! directions, is the *boundary*: two times that are further apart than it are in the order in
//! which they were read.
//!
//! With more than eight CPUs only pairs with the first one are measured. The sum of the two largest
//! differences is then a boundary, for messages by way of that CPU.
//!
//! # Reads that overtake
//!
//! A CPU executes out of order, and may read its counter before loads that come earlier in the
//! program, or after loads that come later. So a read of the counter stands between two fences
//! here; that doubles its cost (28 ns rather than 16 on a virtual Sapphire Rapids).

use super::Clock;
use crate::sync::{clock, hint};

/// A clock of the CPUs' counters.
#[derive(Debug)]
pub struct Ordo {
    /// In ticks of the counter.
    boundary: u64,
}

impl Ordo {
    /// Twice the largest boundary in the paper, which is 1,214 cycles, on 224 cores. A tick is 0.3
    /// ns or more.
    pub const GENEROUS: u64 = 2500;

    /// Creates one with a boundary that was measured before, in ticks of the CPU's counter. If two
    /// CPUs' counters differ by more, snapshots are not of one moment.
    ///
    /// # Panics
    ///
    /// If it is 2^62 ticks or more, which is longer than any machine runs.
    #[must_use]
    pub const fn with_boundary(ticks: u64) -> Self {
        assert!(
            ticks < 1 << 62,
            "a boundary of 2^62 ticks or more is longer than any machine runs"
        );
        Self { boundary: ticks }
    }

    /// A clock with the boundary of this machine. The first call in a process measures it, which
    /// takes a few milliseconds for each pair of CPUs, and longer if they are busy. On a simulated
    /// machine the model gives the boundary. Where no measurement is possible, it is
    /// [`GENEROUS`](Self::GENEROUS): without the feature `std`, where threads cannot be put onto
    /// CPUs, or where the simulator explores schedules.
    #[must_use]
    pub fn measured() -> Self {
        Self { boundary: clock::boundary().unwrap_or(Self::GENEROUS) }
    }

    /// In ticks of the CPU's counter.
    #[must_use]
    pub fn boundary(&self) -> u64 {
        self.boundary
    }
}

impl Default for Ordo {
    fn default() -> Self {
        Self::measured()
    }
}

// SAFETY: counters begin at 0 and take decades to 2^62, and the boundary is less than that. The
// promises (it does not claim to be exact): if one call of `ordered` returns before another is
// made, the second returns no less than the first minus the boundary, by the definition of the
// boundary; and writes before a read-modify-write are visible when `ordered` reads the counter.
unsafe impl Clock for Ordo {
    #[inline]
    fn present(&self) -> u64 {
        clock::ordered()
    }

    #[inline]
    fn stamp(&self) -> u64 {
        clock::ordered() + self.boundary + 1
    }

    #[inline]
    fn fresh(&self) -> u64 {
        // A stamp is ahead of its own clock by the boundary, and that clock is ahead of this one by
        // at most the boundary.
        let fresh = clock::ordered() + 2 * self.boundary + 1;
        loop {
            let now = clock::ordered();
            if now >= fresh {
                return now;
            }
            hint::pause();
        }
    }

    #[inline]
    fn horizon(&self) -> u64 {
        clock::ordered().saturating_sub(self.boundary)
    }

    #[inline]
    fn pass(&self, stamp: u64) {
        // Other clocks are behind by at most the boundary, and their stamps are ahead of them by
        // the boundary and one tick.
        while clock::ordered() < stamp {
            hint::pause();
        }
    }
}

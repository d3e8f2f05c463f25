//! A number that every commit increments.

use super::Clock;
use crate::sync::atomic::AtomicU64;
use crate::sync::{CachePadded, order};

/// A clock of one number, on a line that all threads share: exact, and as fast as that line
/// travels.
#[derive(Debug)]
pub struct Counter(CachePadded<AtomicU64>);

impl Default for Counter {
    fn default() -> Self {
        Self(CachePadded(AtomicU64::new(1)))
    }
}

// SAFETY: the increments of one word have one order, and each is seen, with all that its thread did
// before, by a thread that reads its number or a later one (AcqRel and Acquire).
unsafe impl Clock for Counter {
    #[inline]
    fn is_exact(&self) -> bool {
        true
    }

    #[inline]
    fn present(&self) -> u64 {
        // Acquire: partner of the Release in `stamp`; and nothing that follows is read earlier.
        self.0.load(order!(Acquire, "counter-present"))
    }

    #[inline]
    fn stamp(&self) -> u64 {
        // AcqRel: the number is after that of every present that this thread knows of, and partner
        // of the Acquire in `present`.
        self.0.fetch_add(1, order!(AcqRel, "counter-stamp")) + 1
    }

    #[inline]
    fn fresh(&self) -> u64 {
        self.present()
    }

    #[inline]
    fn horizon(&self) -> u64 {
        self.present()
    }

    #[inline]
    fn pass(&self, _: u64) {} // each stamp is later than those before, whichever thread asks
}

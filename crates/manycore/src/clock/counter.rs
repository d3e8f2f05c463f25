//! A number that every commit increments.

use super::Clock;
use crate::sync::atomic::AtomicU64;
use crate::sync::{CachePadded, order};

/// A clock that is one number on a cache line that all threads share. It is exact; its speed is
/// limited by the transfers of that line.
#[derive(Debug)]
pub struct Counter(CachePadded<AtomicU64>);

impl Default for Counter {
    fn default() -> Self {
        Self(CachePadded(AtomicU64::new(1)))
    }
}

// SAFETY: the increments of one word have one order. A thread that reads an increment's number or a
// later one sees the increment, and all earlier writes of its thread (AcqRel and Acquire).
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
        // AcqRel: the number is later than every present that this thread has seen; partner of the
        // Acquire in `present`.
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

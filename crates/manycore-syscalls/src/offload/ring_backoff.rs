//! When a ring is left to itself: its thread comes to its CPU too late.
//!
//! # Idea
//!
//! The kernel's thread of a ring spins, and while it spins it does not give up its CPU before its
//! time slice ends. If two programs have such threads on the same CPUs, each call waits for a slice
//! of the other thread: milliseconds, whereas waking a worker takes microseconds. No entry of ours
//! waits in the ring, so every answer that takes [`LATE`] is late for this reason. If one out of
//! [`WEIGHT`] answers is late, the calls cost more than in the pool. Then the pool takes the calls
//! for [`REST`], during which the kernel's thread goes to sleep. After that the ring is tried
//! again, and with the next late answer it rests twice as long, up to [`LONGEST`].
//!
//! # Cost
//!
//! A read of a word for each call, and of the clock for calls that sleep until their answer is
//! there.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::raw::SLOWER;

/// In ticks, about half a millisecond: more than it takes to wake a thread, and less than a time
/// slice.
const LATE: u64 = 1 << (20 - SLOWER);
/// A late answer weighs as much as this many timely ones.
const WEIGHT: u32 = 16;
/// The weight of late answers with which a ring rests.
const LIMIT: u32 = 4 * WEIGHT;
/// In ticks, about a tenth of a second: many times the duration of a trial.
const REST: u64 = 1 << (28 - SLOWER);
/// The number of rests that each are twice the one before; the last takes about three seconds.
const LONGEST: u32 = 5;

/// Relaxed throughout: these are measurements, which concurrent threads may overwrite.
const ORDER: Ordering = Ordering::Relaxed;

/// The history of a ring's answers. All zero means that none was late.
#[derive(Debug, Default)]
pub struct RingBackoff {
    /// Late answers by their weight, less the timely ones.
    weight: AtomicU32,
    /// Rests in a row.
    rests: AtomicU32,
    /// The end of the last one, in ticks.
    until: AtomicU64,
}

impl RingBackoff {
    /// Whether the ring rests.
    #[inline]
    pub fn rests(&self, now: impl FnOnce() -> u64) -> bool {
        // Signed: the counter may begin anew in between.
        self.rests.load(ORDER) > 0 && (self.until.load(ORDER).wrapping_sub(now()) as i64) > 0
    }

    /// An answer came soon.
    #[inline]
    pub fn note_soon(&self) {
        let weight = self.weight.load(ORDER);
        if weight > 0 {
            self.weight.store(weight - 1, ORDER);
        } else if self.rests.load(ORDER) > 0 {
            self.rests.store(0, ORDER);
        }
    }

    /// Records an answer that came at `now`, and for which a caller had slept since `began`.
    pub fn note(&self, began: u64, now: u64) {
        if now.wrapping_sub(began) < LATE {
            return self.note_soon();
        }
        let weight = self.weight.load(ORDER) + WEIGHT;
        if weight < LIMIT {
            return self.weight.store(weight, ORDER);
        }
        // One more is enough the next time.
        self.weight.store(LIMIT - 1, ORDER);
        let rests = self.rests.load(ORDER);
        self.rests.store((rests + 1).min(LONGEST + 1), ORDER);
        self.until.store(now.wrapping_add(REST << rests.min(LONGEST)), ORDER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Soon after this the counter begins anew.
    const NOW: u64 = u64::MAX - 7;

    fn rests_at(ring: &RingBackoff, after: u64) -> bool {
        ring.rests(|| NOW.wrapping_add(after))
    }

    #[test]
    fn some_late_answers_are_no_reason_to_rest() {
        let ring = RingBackoff::default();
        for _ in 0..1000 {
            ring.note(NOW - LATE, NOW);
            (0..WEIGHT).for_each(|_| ring.note_soon());
            assert!(!rests_at(&ring, 0));
        }
    }

    #[test]
    fn a_ring_whose_answers_are_late_rests_and_is_tried_again() {
        let ring = RingBackoff::default();
        (0..3).for_each(|_| ring.note(NOW - LATE, NOW));
        assert!(!rests_at(&ring, 0));
        ring.note(NOW - LATE, NOW);
        assert!(rests_at(&ring, 0) && rests_at(&ring, REST - 1) && !rests_at(&ring, REST));
        ring.note(NOW - LATE + 1, NOW);
        assert!(rests_at(&ring, 0), "an answer to what was sent before");
        ring.note(NOW - LATE, NOW);
        assert!(rests_at(&ring, 2 * REST - 1) && !rests_at(&ring, 2 * REST), "twice as long");
        (0..100).for_each(|_| ring.note(NOW - LATE, NOW));
        assert!(rests_at(&ring, (REST << LONGEST) - 1) && !rests_at(&ring, REST << LONGEST));
    }

    #[test]
    fn a_ring_that_is_in_time_again_is_as_good_as_new() {
        let ring = RingBackoff::default();
        (0..4).for_each(|_| ring.note(NOW - LATE, NOW));
        (0..LIMIT).for_each(|_| ring.note_soon());
        (0..4).for_each(|_| ring.note(NOW - LATE, NOW));
        assert!(rests_at(&ring, REST - 1) && !rests_at(&ring, REST));
    }
}

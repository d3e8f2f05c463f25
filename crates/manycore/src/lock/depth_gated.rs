//! `depth-gated`: few waiters poll, at long intervals, and all others sleep at once.
//!
//! # Idea
//!
//! Each poll of the lock's word takes its line from the holder, so polls are far apart. A waiter
//! polls up to twenty times, with 64 to 127 pauses between two polls. Each wait draws this number
//! anew, so that two waiters do not poll at the same moments. While no thread sleeps, any number of
//! waiters may poll in this way. A waiter that finds a sleeper stops polling, since a release then
//! wakes the sleeper. The lock counts its sleepers. With four of them, a waiter that finds the word
//! *contended* does not poll at all: it marks the word and sleeps, as in [`Futex`].
//!
//! # Source
//!
//! The mutex that ordo-one's `synchronization-benchmarks`, 2026, found best for short sections on
//! machines with 12 to 64 CPUs: reimplemented here from its description.
//!
//! # Fork
//!
//! In the child of a fork the count still includes the parent's sleepers, which do not exist there.
//! So the child's waiters poll less often.
//!
//! # Memory order
//!
//! The same as for [`Futex`], which makes all accesses except those to the count. The count decides
//! how a thread waits and orders nothing (Relaxed).
//!
//! # Cost
//!
//! Uncontended: as `futex`, by the same instructions. A thread that sleeps changes the count twice,
//! in the line of the word.
//!
//! # When not to use it
//!
//! Where a waiter must notice a free lock soon: it polls only every 0.3 to 4 us, depending on the
//! processor.

use super::futex::{CONTENDED, FREE, Futex, HELD, acquires_by_word};
use super::plain::{PlainLock, without_node};
use super::spin_then_block::RandomDelays;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Deadline, Woken, const_new, hint, tuning};
use crate::{LockInfo, Order};

/// A waiter that finds four asleep does not look.
const SLEEPERS: u32 = 4;

/// How often each looks.
const PROBES: u32 = 20;

/// Pauses between two polls: this many, and up to as many more.
const PAUSES: u32 = 64;

/// A mutex with three states, and a count of its sleepers.
#[derive(Debug, Default)]
#[repr(C)]
pub struct DepthGated {
    word: Futex,
    sleepers: AtomicU32,
}

impl DepthGated {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { word: Futex::new(), sleepers: AtomicU32::new(0) }
        }
    }

    /// Acquires the lock by polling; returns false if another thread sleeps first, or the polls are
    /// used up.
    fn spin(&self) -> bool {
        // Relaxed: see the page.
        let deep = self.sleepers.load(Ordering::Relaxed) >= SLEEPERS;
        if deep && self.word.poll() == CONTENDED {
            return false;
        }
        let delay = RandomDelays::pauses(PAUSES, PAUSES);
        for _ in 0..tuning::rounds_of(PROBES) {
            match self.word.poll() {
                FREE if self.word.try_take(HELD) => return true,
                CONTENDED => return false,
                _ => hint::delay(delay),
            }
        }
        false
    }

    /// Says whether the lock was acquired before the deadline.
    fn wait(&self, deadline: Option<Deadline>) -> bool {
        if self.spin() || self.word.mark() {
            return true;
        }
        // Relaxed, both: see the page.
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let acquired = self.block(deadline);
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        acquired
    }

    /// Sleeps on the word, which is marked.
    fn block(&self, deadline: Option<Deadline>) -> bool {
        loop {
            if self.word.sleep(deadline) == Woken::TimedOut {
                return false;
            }
            if self.word.mark() {
                return true;
            }
        }
    }
}

// SAFETY: the lock is held while the word of the `Futex` is, which excludes and orders; the count
// of sleepers decides only how long to spin. Eight bytes, and zero is a free word without sleepers.
unsafe impl PlainLock for DepthGated {
    const INFO: LockInfo = LockInfo {
        name: "depth-gated",
        summary: "three-state mutex whose waiters look far apart, and not at all where others sleep",
        source: "ordo-one, synchronization-benchmarks, 2026",
        order: Order::Barging,
        blocks: true,
    };

    acquires_by_word!();
}

without_node!(DepthGated);

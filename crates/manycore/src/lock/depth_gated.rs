//! `depth-gated`: few waiters look, far apart, and all others sleep at once.
//!
//! # Idea
//!
//! That a waiter looks at the lock's word pays only for the next few in turn: each look takes the line from the holder, and who
//! comes fifth looks in vain. So the lock counts its waiters. One that finds fewer than four looks up to twenty times, 64 pauses
//! apart on average and at random, so that two do not come at once; one that finds more sleeps at once, as in [`Futex`].
//!
//! # Source
//!
//! The depth-gated mutex of ordo-one's `synchronization-benchmarks`, 2026, whose measurements on machines with 12 to 64 CPUs
//! models of machines are compared with: written anew here after its description.
//!
//! # Fork
//!
//! In the child of a fork the count has the parent's waiters, who do not exist there: the child's waiters look less, or not.
//!
//! # Memory order
//!
//! That of [`Futex`], of which all accesses are but those to the count, which decides how somebody waits and orders nothing
//! (Relaxed).
//!
//! # Cost
//!
//! Uncontended, that of `futex`, by the same instructions. Each waiter changes the count twice, in the line of the word.
//!
//! # When not to use it
//!
//! Where a free lock has to be noticed soon: looks are 0.3 to 2 us apart.

use super::futex::{Futex, HELD};
use super::plain::{PlainLock, without_node};
use super::spin_then_block::RandomDelays;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Deadline, Woken, const_new, tuning};
use crate::{LockInfo, Order};

/// Waiters that may look.
const SPINNERS: u32 = 4;

/// How often each looks.
const LOOKS: u32 = 20;

/// The mean number of pauses between two looks.
const PAUSES: u32 = 64;

/// A three-state mutex with a count of its waiters.
#[derive(Debug, Default)]
#[repr(C)]
pub struct DepthGated {
    word: Futex,
    waiters: AtomicU32,
}

impl DepthGated {
    const_new! {
        /// A lock that nobody holds.
        pub fn new() -> Self {
            Self { word: Futex::new(), waiters: AtomicU32::new(0) }
        }
    }

    /// Acquires the lock by looking; says whether that succeeded in time.
    fn spin(&self) -> bool {
        let looks = tuning::rounds_of(LOOKS);
        let mut delays = RandomDelays::new(looks, 0);
        for _ in 0..looks {
            if self.word.looks_free() && self.word.try_take(HELD) {
                return true;
            }
            delays.delay_pauses(2 * PAUSES);
        }
        false
    }

    /// Says whether the lock was acquired before the deadline.
    fn wait(&self, deadline: Option<Deadline>) -> bool {
        // Relaxed, both: see the page.
        let before = self.waiters.fetch_add(1, Ordering::Relaxed);
        let acquired = before < SPINNERS && self.spin() || self.block(deadline);
        self.waiters.fetch_sub(1, Ordering::Relaxed);
        acquired
    }

    fn block(&self, deadline: Option<Deadline>) -> bool {
        while !self.word.mark() {
            if self.word.sleep(deadline) == Woken::TimedOut {
                return false;
            }
        }
        true
    }
}

// SAFETY: that of `Futex`, whose word it has; eight bytes, and zero is free without waiters.
unsafe impl PlainLock for DepthGated {
    const INFO: LockInfo = LockInfo {
        name: "depth-gated",
        summary: "three-state mutex of whose waiters four look, far apart; the others sleep at once",
        source: "ordo-one, synchronization-benchmarks, 2026",
        order: Order::Barging,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        self.word.try_acquire()
    }

    #[cold]
    fn acquire_contended(&self) {
        self.wait(None);
    }

    #[cold]
    fn acquire_until(&self, deadline: Deadline) -> bool {
        self.try_acquire() || self.wait(Some(deadline))
    }

    #[inline]
    unsafe fn release(&self) {
        // SAFETY: passed on.
        unsafe { self.word.release() }
    }
}

without_node!(DepthGated);

//! `tas`: test-and-set, and again until it works.
//!
//! # Idea
//!
//! The lock is a flag. A waiter swaps *held* into it until it gets *free* out.
//!
//! # Source
//!
//! The first lock of every textbook; measured as such in T. E. Anderson, "The Performance of Spin
//! Lock Alternatives for Shared-Memory Multiprocessors", IEEE TPDS 1(1), 1990.
//!
//! # Memory order
//!
//! A swap that returns *free* (Acquire) reads from the store that released (Release).
//!
//! # Cost
//!
//! Uncontended: one swap and one store, the cheapest of all. Each attempt of a waiter takes the
//! line away from the owner, which needs it for the release. So each additional waiting CPU makes
//! each section longer.
//!
//! # When not to use it
//!
//! With more than two CPUs, except to see the cost of contention. With more runnable threads than
//! CPUs, where waiters keep the CPU from the holder for whole time slices: they never give it up.

use super::plain::{PlainLock, without_node};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{const_new, hint, order};
use crate::{LockInfo, Order};

const FREE: u32 = 0;
const HELD: u32 = 1;

/// The test-and-set lock.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Tas {
    state: AtomicU32,
}

impl Tas {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { state: AtomicU32::new(FREE) }
        }
    }

    /// Whether no thread holds the lock now: what [`Ttas`](super::Ttas) polls.
    #[inline]
    pub(super) fn looks_free(&self) -> bool {
        // Relaxed: a hint; the swap that follows decides and orders.
        self.state.load(Ordering::Relaxed) == FREE
    }
}

// SAFETY: only one swap gets *free* out of the state until `release` puts it back; four bytes, and
// zero is free.
unsafe impl PlainLock for Tas {
    const INFO: LockInfo = LockInfo {
        name: "tas",
        summary: "test-and-set: swaps until it works; never gives up the CPU",
        source: "Anderson, TPDS 1990",
        order: Order::Barging,
        blocks: false,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        // Acquire: partner of the Release in `release`.
        self.state.swap(HELD, order!(Acquire, "tas-acquire")) == FREE
    }

    #[cold]
    fn acquire_contended(&self) {
        while !self.try_acquire() {
            hint::spin_loop();
        }
    }

    #[inline]
    unsafe fn release(&self) {
        // Release: partner of the Acquire in `try_acquire`.
        let release = order!(Release, "tas-release");
        if cfg!(loom) {
            // Loom may order a store before all later swaps of a waiter, for ever; it cannot do so
            // with a swap.
            self.state.swap(FREE, release);
        } else {
            self.state.store(FREE, release);
        }
    }
}

without_node!(Tas);

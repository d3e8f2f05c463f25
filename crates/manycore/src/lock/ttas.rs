//! `ttas`: test, and test-and-set only when it looks free.
//!
//! # Idea
//!
//! Waiters of [`Tas`] move the line between them although no swap can succeed while the lock is
//! held. Here a waiter reads, in its own cache, until it sees the lock free; only then it swaps.
//!
//! # Source
//!
//! L. Rudolph and Z. Segall, "Dynamic Decentralized Cache Schemes for MIMD Parallel Processors",
//! ISCA 1984; measured in T. E. Anderson, IEEE TPDS 1(1), 1990.
//!
//! # Memory order
//!
//! The same as for [`Tas`], whose flag it uses: the reads are hints and Relaxed.
//!
//! # Cost
//!
//! While the lock is held, waiters cause no traffic. When it becomes free, all of them see it and
//! execute a swap: about one line transfer for each waiter in each hand-off.
//!
//! # When not to use it
//!
//! With many waiters, which all swap at each release: `exponential` avoids that by delays, `mcs` by
//! a queue. With more runnable threads than CPUs: it never gives up the CPU.

use super::Tas;
use super::plain::{PlainLock, without_node};
use crate::sync::{const_new, hint};
use crate::{LockInfo, Order};

/// The test-and-test-and-set lock.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Ttas {
    flag: Tas,
}

impl Ttas {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { flag: Tas::new() }
        }
    }
}

// SAFETY: the lock is held while its `Tas` is, which excludes and orders; this adds only when to
// try.
unsafe impl PlainLock for Ttas {
    const INFO: LockInfo = LockInfo {
        name: "ttas",
        summary: "test-and-test-and-set: reads until it looks free, then swaps; never gives up the CPU",
        source: "Rudolph and Segall, ISCA 1984; Anderson, TPDS 1990",
        order: Order::Barging,
        blocks: false,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        self.flag.try_acquire()
    }

    #[cold]
    fn acquire_contended(&self) {
        loop {
            while !self.flag.looks_free() {
                hint::spin_loop();
            }
            if self.flag.try_acquire() {
                return;
            }
        }
    }

    #[inline]
    unsafe fn release(&self) {
        // SAFETY: an acquisition of this lock acquires `flag`, and the caller holds the lock
        // (contract of `PlainLock::release`).
        unsafe { self.flag.release() }
    }
}

without_node!(Ttas);

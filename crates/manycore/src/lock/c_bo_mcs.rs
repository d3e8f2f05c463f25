//! `c-bo-mcs`: an `mcs` queue for each node of memory, and a word with back-off between them.
//!
//! # Idea
//!
//! A cohort lock, see [`Cohorts`]: the threads of a NUMA node queue as in `mcs`, and only the head
//! of such a queue competes for the word. So few threads compete. A simple lock with exponential
//! back-off, which costs the least without contention, is enough for them.
//!
//! # Source
//!
//! D. Dice, V. J. Marathe and N. Shavit, "Lock Cohorting: A General Technique for Designing NUMA
//! Locks", PPoPP 2012. The word is that of [`Exponential`]. In the paper a waiter for the word
//! spins for ever; here it sleeps after some time, as waiters in the queues do.
//!
//! # Memory order
//!
//! As for `mcs` within a NUMA node. Between nodes, the word is acquired and released. A node that
//! passes the lock on leaves the word held, and any of its threads may release the word.
//!
//! # Cost
//!
//! Uncontended, two compare-and-swaps to acquire, and two to release. Contended, 64 of 65 hand-offs
//! stay within a node.
//!
//! # When not to use it
//!
//! Where NUMA nodes have to be served evenly: a thread in a back-off notices a release late, and
//! the releasing node may get the word again immediately. On one NUMA node, where `mcs` does the
//! same with half the work. A lock takes 1 KiB.

use super::Exponential;
use super::cohort::Cohorts;
use super::plain::{PlainLock, without_node};
use crate::sync::const_new;
use crate::{LockInfo, Order};

/// The cohort lock of a word with back-off over MCS queues.
#[derive(Debug)]
pub struct CBoMcs {
    cohorts: Cohorts,
    word: Exponential,
}

impl Default for CBoMcs {
    fn default() -> Self {
        Self::new()
    }
}

impl CBoMcs {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { cohorts: Cohorts::new(), word: Exponential::new() }
        }
    }
}

// SAFETY: the word is a lock that any thread may release; zero is free, with empty queues.
unsafe impl PlainLock for CBoMcs {
    const INFO: LockInfo = LockInfo {
        name: "c-bo-mcs",
        summary: "mcs in each node of memory, and a word with exponential back-off between them",
        source: "Dice, Marathe and Shavit, PPoPP 2012",
        order: Order::Queued,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        self.cohorts.try_acquire(|_| self.word.try_acquire())
    }

    #[cold]
    fn acquire_contended(&self) {
        self.cohorts.acquire(|_| self.word.acquire());
    }

    #[inline]
    unsafe fn release(&self) {
        // SAFETY: the caller holds the lock (contract of `PlainLock::release`), as
        // `Cohorts::release` requires. The word was acquired by the thread that climbed and has
        // been passed on with the lock, so it is held until `descend` is called.
        unsafe { self.cohorts.release(|_| self.word.release()) };
    }
}

without_node!(CBoMcs);

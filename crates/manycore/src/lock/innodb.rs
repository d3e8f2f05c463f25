//! `innodb`: test, delay for a random time, test again; after some rounds block.
//!
//! # Idea
//!
//! Waiters that test the lock at every moment keep its cache line moving, and all attack at once when it comes free.
//! Delays of random length spread them out. The CPU stays with the waiter, in the hope that the lock is free sooner
//! than a sleep and a wake-up would take.
//!
//! # Source
//!
//! MySQL 5.6, `InnoDB` mutexes, as told by H. Han, "Locking in practice", Algorithm 1: at most 30 rounds
//! (`innodb_sync_spin_loops`), delays of up to 6 units of 50 pause instructions (`innodb_spin_wait_delay`).
//!
//! # Memory order
//!
//! That of [`Futex`](super::Futex), by way of [`SpinThenBlock`].
//!
//! # Cost
//!
//! A waiter tests the lock about every 150 pauses, and so takes that long to notice a release. It burns up to 30
//! times as much before it sleeps: some tens of microseconds.
//!
//! # When not to use it
//!
//! When threads outnumber CPUs: throughput then falls as CPUs are added, because waiters run in place of holders.

use super::spin_then_block::{Patience, RandomDelays, SpinThenBlock};
use crate::sync::tuning;
use crate::{LockInfo, Order};

/// Spins with random delays, then blocks: the mutex of MySQL's InnoDB.
pub type Innodb = SpinThenBlock<InnodbPatience>;

/// Random delays of at most `MaxDelay`, in each of `SpinRound` rounds.
#[derive(Debug)]
pub struct InnodbPatience(RandomDelays);

impl Patience for InnodbPatience {
    const INFO: LockInfo = LockInfo {
        name: "innodb",
        summary: "spins with random delays, then blocks",
        source: "MySQL 5.6; Han, Locking in practice",
        order: Order::Barging,
        blocks: true,
    };

    fn begin() -> Self {
        Self(RandomDelays::new(tuning::rounds(), tuning::delay()))
    }

    fn pause(&mut self) -> bool {
        self.0.pause()
    }
}

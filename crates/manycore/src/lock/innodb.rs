//! `innodb`: test, delay for a random time, test again; after some rounds block. `half-spin` does
//! so in half as many rounds, `double-delay` with delays twice as long.
//!
//! # Idea
//!
//! If waiters test the lock all the time, its cache line moves all the time, and all of them
//! contend when it becomes free. Delays of random length spread the tests out. The waiter keeps its
//! CPU, since the lock is probably free sooner than a sleep and a wake-up would take.
//!
//! Against contention try longer delays first: then there are fewer tests in the same number of
//! rounds, and a longer spin before a waiter blocks. If spinning takes CPUs from threads that could
//! use them, reduce the rounds.
//!
//! # Source
//!
//! MySQL 5.6, `InnoDB` mutexes, as told by H. Han, "Locking in practice", Algorithm 1: at most 30
//! rounds (`innodb_sync_spin_loops`), delays of up to 6 units of 50 pause instructions
//! (`innodb_spin_wait_delay`). The other two are in its Table 1 and Algorithm 2, *Half SpinRound*
//! and *Double Delay*.
//!
//! # Memory order
//!
//! That of [`Futex`](super::Futex), by way of [`SpinThenBlock`].
//!
//! # Cost
//!
//! A waiter tests the lock about every 150 pauses, and so may take that long to notice a release.
//! It tests up to 30 times before it sleeps: some tens of microseconds. `half-spin` spins for half
//! of that; `double-delay` takes twice as long to notice a release, and to block.
//!
//! # When not to use it
//!
//! When threads outnumber CPUs: throughput then falls as CPUs are added, because waiters run
//! instead of holders. With `double-delay` it falls at a lower load; `half-spin` changes this load,
//! but does not prevent the fall.

use super::spin_then_block::{Patience, RandomDelays, SpinThenBlock};
use crate::sync::tuning;
use crate::{LockInfo, Order};

/// `lock, patience: rounds, longest delay, row;`.
macro_rules! innodb {
    ($($(#[$doc:meta])* $lock:ident, $patience:ident: $rounds:expr, $delay:expr, $info:expr;)*) => {
        $(
            $(#[$doc])*
            pub type $lock = SpinThenBlock<$patience>;

            #[doc = concat!("How a waiter of [`", stringify!($lock), "`] passes the time.")]
            #[derive(Debug)]
            pub struct $patience(RandomDelays);

            impl Patience for $patience {
                const INFO: LockInfo = $info;

                fn begin() -> Self {
                    Self(RandomDelays::new($rounds, $delay))
                }

                fn pause(&mut self) -> bool {
                    self.0.pause()
                }
            }
        )*
    };
}

innodb! {
    /// Spins with random delays, then blocks: the mutex of MySQL's InnoDB.
    Innodb, InnodbPatience: tuning::rounds(), tuning::delay(), LockInfo {
        name: "innodb",
        summary: "spins with random delays, then blocks",
        source: "MySQL 5.6; Han, Locking in practice",
        order: Order::Barging,
        blocks: true,
    };
    /// InnoDB's mutex with half the rounds.
    HalfSpin, HalfSpinPatience: tuning::rounds() / 2, tuning::delay(), LockInfo {
        name: "half-spin",
        summary: "innodb with half the rounds",
        source: "Han, Locking in practice",
        order: Order::Barging,
        blocks: true,
    };
    /// InnoDB's mutex with delays twice as long.
    DoubleDelay, DoubleDelayPatience: tuning::rounds(), tuning::delay().saturating_mul(2), LockInfo {
        name: "double-delay",
        summary: "innodb with delays twice as long",
        source: "Han, Locking in practice",
        order: Order::Barging,
        blocks: true,
    };
}

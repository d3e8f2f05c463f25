//! `exponential`: `innodb` with delays that double in every round.
//!
//! # Idea
//!
//! Test-and-test-and-set with exponential back-off, the best of the simple spin locks on empty
//! critical sections: a waiter that has failed often assumes that many wait, and tests less often.
//!
//! # Source
//!
//! H. Han, "Locking in practice", Table 1 and Algorithm 2, *Exponential Backoff*; the back-off
//! itself from T. E. Anderson, "The Performance of Spin Lock Alternatives for Shared-Memory
//! Multiprocessors", TPDS 1990. The listing doubles MaxDelay without end, which after 30 rounds
//! would be a delay of minutes; here it stops growing at 64 times its first value.
//!
//! # Memory order
//!
//! That of [`Futex`](super::Futex), by way of [`SpinThenBlock`].
//!
//! # Cost
//!
//! Contended, a waiter polls rarely, and notices a free lock late, by up to a long delay. A waiter
//! that uses all its rounds has wasted milliseconds of CPU time.
//!
//! # When not to use it
//!
//! As for [`Innodb`](super::Innodb). Also with critical sections of varying length, for which the
//! delay is always either too short or too long.

use super::spin_then_block::{Patience, RandomDelays, SpinThenBlock};
use crate::sync::tuning;
use crate::{LockInfo, Order};

/// How often the longest delay doubles.
const DOUBLINGS: u32 = 6;

/// InnoDB's mutex with delays that double in every round.
pub type Exponential = SpinThenBlock<ExponentialPatience>;

/// Random delays of at most `MaxDelay`, which doubles until it is 64 times as long.
#[derive(Debug)]
pub struct ExponentialPatience {
    delays: RandomDelays,
    doublings: u32,
}

impl Patience for ExponentialPatience {
    const INFO: LockInfo = LockInfo {
        name: "exponential",
        summary: "innodb with delays that double in every round, up to 64 times the first",
        source: "Han, Locking in practice; Anderson, TPDS 1990",
        order: Order::Barging,
        blocks: true,
    };

    fn begin() -> Self {
        let delays = RandomDelays::new(tuning::rounds(), tuning::delay());
        Self { delays, doublings: DOUBLINGS }
    }

    fn pause(&mut self) -> bool {
        let again = self.delays.pause();
        if self.doublings > 0 {
            self.doublings -= 1;
            self.delays.longest = self.delays.longest.saturating_mul(2);
        }
        again
    }
}

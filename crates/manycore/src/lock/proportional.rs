//! `proportional`: `innodb` with delays that grow by one unit in every round.
//!
//! # Idea
//!
//! A slower back-off than by doubling: the delay grows with the number of failures. So a waiter
//! notices a free lock within a time that is short compared with its wait so far.
//!
//! # Source
//!
//! H. Han, "Locking in practice", Table 1 and Algorithm 2, *Proportional Backoff*.
//!
//! # Memory order
//!
//! That of [`Futex`](super::Futex), by way of [`SpinThenBlock`].
//!
//! # Cost
//!
//! With the usual parameters the last of 30 rounds delays for up to 35 units instead of 6.
//! Altogether, a waiter uses three and a half times as much CPU time as in
//! [`Innodb`](super::Innodb) before it blocks.
//!
//! # When not to use it
//!
//! As for `innodb`, and earlier.

use super::spin_then_block::{Patience, RandomDelays, SpinThenBlock};
use crate::sync::tuning;
use crate::{LockInfo, Order};

/// InnoDB's mutex with delays that grow by one unit in every round.
pub type Proportional = SpinThenBlock<ProportionalPatience>;

/// Random delays of at most `MaxDelay`, which grows by one in every round.
#[derive(Debug)]
pub struct ProportionalPatience(RandomDelays);

impl Patience for ProportionalPatience {
    const INFO: LockInfo = LockInfo {
        name: "proportional",
        summary: "innodb with delays that grow by one unit in every round",
        source: "Han, Locking in practice",
        order: Order::Barging,
        blocks: true,
    };

    fn begin() -> Self {
        Self(RandomDelays::new(tuning::rounds(), tuning::delay()))
    }

    fn pause(&mut self) -> bool {
        let again = self.0.pause();
        self.0.longest = self.0.longest.saturating_add(1);
        again
    }
}

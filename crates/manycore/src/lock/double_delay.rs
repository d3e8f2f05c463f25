//! `double-delay`: `innodb` with delays twice as long.
//!
//! # Idea
//!
//! The first thing that one tries against contention: fewer tests in the same number of rounds, and a longer spin
//! before a waiter blocks.
//!
//! # Source
//!
//! H. Han, "Locking in practice", Table 1 and Algorithm 2, *Double Delay*.
//!
//! # Memory order
//!
//! That of [`Futex`](super::Futex), by way of [`SpinThenBlock`].
//!
//! # Cost
//!
//! As for [`Innodb`](super::Innodb), with twice the time to notice a release, and to block.
//!
//! # When not to use it
//!
//! As for `innodb`, and earlier: what a waiter burns before it blocks has doubled.

use super::spin_then_block::{Patience, RandomDelays, SpinThenBlock};
use crate::sync::tuning;
use crate::{LockInfo, Order};

/// InnoDB's mutex with delays twice as long.
pub type DoubleDelay = SpinThenBlock<DoubleDelayPatience>;

/// Random delays of at most twice `MaxDelay`.
#[derive(Debug)]
pub struct DoubleDelayPatience(RandomDelays);

impl Patience for DoubleDelayPatience {
    const INFO: LockInfo = LockInfo {
        name: "double-delay",
        summary: "innodb with delays twice as long",
        source: "Han, Locking in practice",
        order: Order::Barging,
        blocks: true,
    };

    fn begin() -> Self {
        Self(RandomDelays::new(tuning::rounds(), tuning::delay().saturating_mul(2)))
    }

    fn pause(&mut self) -> bool {
        self.0.pause()
    }
}

//! `half-spin`: `innodb` with half the rounds.
//!
//! # Idea
//!
//! If spinning takes CPUs from those who could use them, spin less: the same delays, but a waiter blocks after half
//! of the rounds.
//!
//! # Source
//!
//! H. Han, "Locking in practice", Table 1 and Algorithm 2, *Half SpinRound*.
//!
//! # Memory order
//!
//! That of [`Futex`](super::Futex), by way of [`SpinThenBlock`].
//!
//! # Cost
//!
//! As for [`Innodb`](super::Innodb), with half as much burnt by a waiter that has to block in the end.
//!
//! # When not to use it
//!
//! As for `innodb`. It moves the load at which throughput falls, and does not prevent the fall.

use super::spin_then_block::{Patience, RandomDelays, SpinThenBlock};
use crate::sync::tuning;
use crate::{LockInfo, Order};

/// InnoDB's mutex with half the rounds.
pub type HalfSpin = SpinThenBlock<HalfSpinPatience>;

/// Random delays of at most `MaxDelay`, in half of `SpinRound` rounds.
#[derive(Debug)]
pub struct HalfSpinPatience(RandomDelays);

impl Patience for HalfSpinPatience {
    const INFO: LockInfo = LockInfo {
        name: "half-spin",
        summary: "innodb with half the rounds",
        source: "Han, Locking in practice",
        order: Order::Barging,
        blocks: true,
    };

    fn begin() -> Self {
        Self(RandomDelays::new(tuning::rounds() / 2, tuning::delay()))
    }

    fn pause(&mut self) -> bool {
        self.0.pause()
    }
}

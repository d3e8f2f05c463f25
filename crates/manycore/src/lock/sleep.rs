//! `sleep`: gives the CPU up between tests instead of delaying.
//!
//! # Idea
//!
//! Under load another thread makes better use of a waiter's CPU. `sleep(0)` gives the CPU up and
//! returns by itself, so no thread has to wake the waiter.
//!
//! # Source
//!
//! H. Han, "Locking in practice", Table 1 and Algorithm 2, *Sleep*. The effect of `sleep(0)` has
//! changed since: today's Linux lets it last for the timer slack, 50 us unless changed.
//! `tuning::set_give_up` chooses `sched_yield` instead, which is closer to the old effect.
//!
//! # Memory order
//!
//! That of [`Futex`](super::Futex), by way of [`SpinThenBlock`].
//!
//! # Cost
//!
//! A system call for each round, and up to 50 us until a waiter notices a free lock, even on an
//! idle machine. Little CPU time is lost. Of the whole family, its throughput falls least as load
//! grows, but its peak is the lowest.
//!
//! # When not to use it
//!
//! While CPUs are idle: there a waiter gains nothing if it gives up its CPU.

use super::spin_then_block::{Patience, SpinThenBlock};
use crate::sync::tuning;
use crate::{LockInfo, Order};

/// InnoDB's mutex, in which a waiter gives up the CPU in place of each delay.
pub type Sleep = SpinThenBlock<SleepPatience>;

/// Gives up the CPU in each of `SpinRound` rounds.
#[derive(Debug)]
pub struct SleepPatience {
    rounds: u32,
}

impl SleepPatience {
    pub(super) fn new(rounds: u32) -> Self {
        Self { rounds }
    }
}

impl Patience for SleepPatience {
    const INFO: LockInfo = LockInfo {
        name: "sleep",
        summary: "gives the CPU up between tests, then blocks",
        source: "Han, Locking in practice",
        order: Order::Barging,
        blocks: true,
    };

    fn begin() -> Self {
        Self::new(tuning::rounds())
    }

    fn pause(&mut self) -> bool {
        if self.rounds == 0 {
            return false;
        }
        self.rounds -= 1;
        tuning::give_up_cpu();
        true
    }
}

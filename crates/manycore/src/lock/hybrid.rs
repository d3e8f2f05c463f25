//! `hybrid`: spins for as long as giving up the CPU would cost, and only then gives it up.
//!
//! # Idea
//!
//! Spinning has the higher peak, and giving up the CPU the steadier throughput. While load is low
//! the lock becomes free soon, and a waiter that spins as in `innodb` gets it. A waiter that has
//! spun for as long as giving up the CPU costs gives it up from then on. So a waiter wastes at most
//! about twice what the better choice would have cost: the argument of the ski-rental problem.
//!
//! # Source
//!
//! H. Han, "Locking in practice", Section 4.2, *Hybrid Locking*: "measure the time of `sleep(0)`,
//! and for that long do not switch contexts". The time is measured here at the first wait
//! (`tuning::give_up_cost`), for the chosen way of giving up the CPU. The paper does not say how
//! often a waiter gives up the CPU before it blocks: here, SpinRound times.
//!
//! # Memory order
//!
//! That of [`Futex`](super::Futex), by way of [`SpinThenBlock`].
//!
//! # Cost
//!
//! With `sleep(0)`, which today takes 50 us and more, a waiter spins for the same time, and then
//! notices a free lock up to 50 us late. With `sched_yield` it spins for less than a microsecond,
//! and polls at that interval.
//!
//! # When not to use it
//!
//! With `sleep(0)`, where a wait has to end soon after the release. With `sched_yield`, on a kernel
//! that gives the CPU back to the waiter immediately although the owner is runnable.

use super::sleep::SleepPatience;
use super::spin_then_block::{Patience, RandomDelays, SpinThenBlock};
use crate::sync::{clock, tuning};
use crate::{LockInfo, Order};

/// Spins for the cost of giving up the CPU, then gives it up, then blocks.
pub type Hybrid = SpinThenBlock<HybridPatience>;

/// Random delays at first; later the waiter gives up the CPU instead.
#[derive(Debug)]
pub struct HybridPatience {
    delays: RandomDelays,
    start: u64,
    /// How long to spin, in ticks of the clock.
    spin: u64,
    sleeps: SleepPatience,
}

impl Patience for HybridPatience {
    const INFO: LockInfo = LockInfo {
        name: "hybrid",
        summary: "spins for the measured cost of giving up the CPU, then gives it up, then blocks",
        source: "Han, Locking in practice",
        order: Order::Barging,
        blocks: true,
    };

    fn begin() -> Self {
        Self {
            delays: RandomDelays::new(0, tuning::delay()), // bounded by time, not by rounds
            spin: u64::from(tuning::give_up_cost()),
            start: clock::now(),
            sleeps: SleepPatience::new(tuning::rounds()),
        }
    }

    fn pause(&mut self) -> bool {
        if clock::has_passed(self.start, self.spin) {
            return self.sleeps.pause();
        }
        self.delays.delay();
        true
    }
}

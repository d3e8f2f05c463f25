//! `rust-std`: a word of three states, whose waiters poll a hundred times before a sleep, and again
//! after a wake-up.
//!
//! # Idea
//!
//! The word is that of [`Futex`]. A waiter polls it up to a hundred times, with a pause between two
//! polls, while it says *held*. If it becomes free the waiter takes the lock. If it says that *a
//! thread may sleep* the waiter stops polling, since polling did not help the sleeper either. Then
//! it marks the word and sleeps. After a wake-up it polls again, in the same way.
//!
//! # Source
//!
//! The mutex of Rust's standard library on Linux (`library/std/src/sys/sync/mutex/futex.rs`, since
//! Rust 1.62), by M. Bos: reimplemented here from its description, so that it can be simulated and
//! put into programs.
//!
//! # Memory order
//!
//! The same as for [`Futex`], which makes all ordering accesses. Polls are hints (Relaxed).
//!
//! # Cost
//!
//! Uncontended: as `futex`, by the same instructions. A hundred pauses take 0.3 us on processors
//! before Skylake and 5 us on those since.
//!
//! # When not to use it
//!
//! Where many wait: each release wakes one waiter, which polls, and arriving threads take the lock
//! before it is awake.

use super::futex::{CONTENDED, FREE, Futex, HELD, acquires_by_word};
use super::plain::{PlainLock, without_node};
use crate::sync::{Deadline, Woken, const_new, hint, tuning};
use crate::{LockInfo, Order};

/// The mutex of Rust's standard library.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct RustStd {
    word: Futex,
}

impl RustStd {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { word: Futex::new() }
        }
    }

    /// Polls until the word changes from *held*, or the polls are used up; returns the word.
    fn spin(&self) -> u32 {
        let mut polls = tuning::polls();
        loop {
            let state = self.word.poll();
            if state != HELD || polls == 0 {
                return state;
            }
            hint::pause();
            polls -= 1;
        }
    }

    /// Says whether the lock was acquired before the deadline.
    fn wait(&self, deadline: Option<Deadline>) -> bool {
        let mut state = self.spin();
        if state == FREE {
            if self.word.try_take(HELD) {
                return true;
            }
            state = self.word.poll();
        }
        loop {
            // A waiter that was woken acquires the lock as contended: others may still be asleep.
            if state != CONTENDED && self.word.mark() {
                return true;
            }
            if self.word.sleep(deadline) == Woken::TimedOut {
                return false;
            }
            state = self.spin();
        }
    }
}

// SAFETY: the lock is held while the word of the `Futex` is, which excludes and orders; this adds
// only when to look and when to sleep.
unsafe impl PlainLock for RustStd {
    const INFO: LockInfo = LockInfo {
        name: "rust-std",
        summary: "three-state mutex that looks a hundred times before each sleep; what Rust's std does",
        source: "Rust's standard library, 2022",
        order: Order::Barging,
        blocks: true,
    };

    acquires_by_word!();
}

without_node!(RustStd);

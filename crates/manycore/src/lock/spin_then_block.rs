//! Spin for a while, then block: the common part of the locks of the InnoDB family.
//!
//! # Idea
//!
//! A waiter tests the lock, passes some time, tests again, and after a number of rounds blocks
//! until a release wakes it; then it begins again. The members of the family differ in how they
//! pass the time and in the number of rounds, their [`Patience`].
//!
//! # Source
//!
//! H. Han, "Locking in practice", Algorithm 2. Two lines of its listing cannot be meant literally.
//! The loop "while taken *or* i < SpinRound" would spin on a free lock, and for ever on a held one:
//! we read it as "and". MaxDelay, doubled in every round, needs a bound.
//!
//! There a waiter blocks on a condition variable, which a release always signals. Here it blocks on
//! the word of [`Futex`], so a release of an uncontended lock signals no thread.
//!
//! # Memory order
//!
//! The same as for [`Futex`], which makes all ordering accesses. A waiter that was woken acquires
//! the lock as *contended*, because the release that woke it has removed the mark and others may
//! still be asleep. For the same reason it must not give up after a wake-up before it has set the
//! mark again: a deadline ends only the sleep itself.
//!
//! # Cost
//!
//! Uncontended: as `Futex`, by the same instructions. A waiter that gets the lock while it spins
//! saves the two system calls and context switches of a sleep.
//!
//! # When not to use it
//!
//! With more runnable threads than CPUs, each spinning waiter keeps a CPU from the thread that it
//! waits for.

use core::marker::PhantomData;

use super::futex::{CONTENDED, Futex, HELD, acquires_by_word};
use super::plain::{PlainLock, without_node};
use crate::LockInfo;
use crate::sync::{Deadline, Woken, clock, const_new, hint, tuning};

/// How a waiter passes the time between two tests of the lock, and when it stops spinning.
pub trait Patience {
    /// The row of the lock that has this patience.
    const INFO: LockInfo;

    /// A waiter begins to spin, at first or after it was woken.
    fn begin() -> Self;

    /// Passes some time; or returns false at once if the waiter is to block now.
    fn pause(&mut self) -> bool;
}

/// A lock of the InnoDB family.
#[repr(transparent)]
pub struct SpinThenBlock<P> {
    word: Futex,
    patience: PhantomData<fn() -> P>,
}

impl<P: Patience> SpinThenBlock<P> {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { word: Futex::new(), patience: PhantomData }
        }
    }

    /// Says whether the lock was acquired before the deadline.
    fn wait(&self, deadline: Option<Deadline>) -> bool {
        let mut taken = HELD;
        while !self.spin(taken, deadline) && !self.word.mark() {
            if self.word.sleep(deadline) == Woken::TimedOut {
                return false;
            }
            taken = CONTENDED;
        }
        true
    }

    /// Acquires the lock, and sets the given state, unless the rounds or the time are over first;
    /// returns whether it did.
    fn spin(&self, taken: u32, deadline: Option<Deadline>) -> bool {
        let mut patience = P::begin();
        loop {
            while self.word.looks_free() {
                if self.word.try_take(taken) {
                    return true;
                }
            }
            if deadline.is_some_and(|d| d.has_passed()) || !patience.pause() {
                return false;
            }
        }
    }
}

// SAFETY: the lock is held while the word of the `Futex` is, which excludes and orders; the
// patience decides only when to look and when to sleep.
unsafe impl<P: Patience> PlainLock for SpinThenBlock<P> {
    const INFO: LockInfo = P::INFO;

    acquires_by_word!();
}

without_node!(SpinThenBlock<P>, P: Patience);

impl<P: Patience> Default for SpinThenBlock<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Patience> core::fmt::Debug for SpinThenBlock<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple(P::INFO.name).field(&self.word).finish()
    }
}

/// A number of rounds, with a delay of random length in each.
#[derive(Debug)]
pub(super) struct RandomDelays {
    rounds: u32,
    /// The longest delay, in units of `tuning::delay_unit`.
    pub(super) longest: u32,
    random: u32,
}

impl RandomDelays {
    pub(super) fn new(rounds: u32, longest: u32) -> Self {
        let mut delays = Self { rounds, longest, random: 0 };
        // Two waiters differ in the time or, on a machine with a slow clock, in the address of
        // their stacks.
        let here = core::ptr::from_ref(&delays).addr() as u64;
        let seed = (clock::now() ^ here).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        delays.random = (seed >> 32) as u32 | 1; // xorshift does not leave 0
        delays
    }

    /// Delays for a random time, in one of the rounds; returns false if there is no round left.
    pub(super) fn pause(&mut self) -> bool {
        if self.rounds == 0 {
            return false;
        }
        self.rounds -= 1;
        self.delay();
        true
    }

    /// Delays for between 0 and `longest` units.
    pub(super) fn delay(&mut self) {
        let scaled = u64::from(self.random()) * (u64::from(self.longest) + 1);
        hint::delay((scaled >> 32) * u64::from(tuning::delay_unit()));
    }

    /// A random number of ticks: those of `least` pauses and up to `more` additional ones.
    pub(super) fn pauses(least: u32, more: u32) -> u64 {
        let drawn = (u64::from(Self::new(0, 0).random()) * u64::from(more)) >> 32;
        (u64::from(least) + drawn) * u64::from(tuning::pause_cost())
    }

    /// Marsaglia's xorshift, 2003: good enough that waiters do not poll at the same moments.
    fn random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }
}

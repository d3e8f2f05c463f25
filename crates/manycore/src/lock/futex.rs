//! `futex`: a word of three states, and a sleep in the kernel.
//!
//! # Idea
//!
//! The word's states are *free*, *held*, and *held and a thread may sleep*. An acquisition without
//! contention is one compare-and-swap, a release one swap. The kernel is called only to sleep, and
//! to wake a thread in the third state. A waiter does not spin: it marks the word, and sleeps until
//! it finds the word free.
//!
//! # Source
//!
//! U. Drepper, "Futexes Are Tricky", 2005, third mutex. It is also what glibc's default mutex does.
//!
//! # Memory order
//!
//! The swap that releases (Release) and the compare-and-swap or swap that acquires (Acquire) are
//! read-modify-writes of one word, so each acquisition reads from the release before it and sees
//! all that the section before it wrote. No wake-up is lost: a sleeper has set *may sleep* by a
//! swap, which only a release replaces by *free*, and that release then wakes. Between the swap and
//! the sleep the kernel compares the word again.
//!
//! # Cost
//!
//! Uncontended: two atomic read-modify-writes. Contended: two system calls and two context switches
//! for each hand-off, some microseconds each. An arriving thread may overtake a sleeping one. So
//! throughput does not fall with the number of threads, but one sleeper may wait for a long time.
//!
//! # When not to use it
//!
//! For sections below a microsecond on CPUs that have nothing else to do: a sleep costs more than
//! the wait.

use super::plain::{PlainLock, waits_with_deadline, without_node};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Deadline, Woken, const_new, futex, mutation, order};
use crate::{LockInfo, Order};

pub(super) const FREE: u32 = 0;
pub(super) const HELD: u32 = 1;
/// Held, and a thread may sleep. A waiter sets this before it sleeps. It also sets it when it
/// acquires the lock after a sleep, because it cannot know whether others are still asleep. So
/// there may be one wake-up too many.
pub(super) const CONTENDED: u32 = 2;

/// The three-state futex mutex.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Futex {
    state: AtomicU32,
}

impl Futex {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { state: AtomicU32::new(FREE) }
        }
    }

    /// Whether no thread holds the lock now: what a spinning waiter polls.
    #[inline]
    pub fn looks_free(&self) -> bool {
        // Relaxed: a hint; the compare-and-swap that follows decides and orders.
        self.state.load(Ordering::Relaxed) == FREE
    }

    /// What the word says now.
    #[inline]
    pub(super) fn poll(&self) -> u32 {
        self.state.load(Ordering::Relaxed) // Relaxed: as in `looks_free`
    }

    /// Acquires the lock if it is free, and sets the given state; returns whether it did.
    #[inline]
    pub(super) fn try_take(&self, state: u32) -> bool {
        // Acquire: partner of the Release in `release`. Relaxed on failure: nothing was acquired.
        let acquire = order!(Acquire, "futex-cas-acquire");
        self.state.compare_exchange(FREE, state, acquire, Ordering::Relaxed).is_ok()
    }

    /// Marks the lock as contended, and acquires it if it turns out to be free; returns whether it
    /// did.
    pub(super) fn mark(&self) -> bool {
        // Acquire: partner of the Release in `release`.
        self.state.swap(CONTENDED, order!(Acquire, "futex-swap-acquire")) == FREE
    }

    /// Sleeps while the lock is held and contended, until a release or the deadline.
    ///
    /// After a time-out the mark stays: the next release makes a wake-up that no thread needs.
    pub(super) fn sleep(&self, deadline: Option<Deadline>) -> Woken {
        futex::wait(&self.state, CONTENDED, deadline)
    }

    #[cold]
    fn wait(&self, deadline: Option<Deadline>) -> bool {
        while !self.mark() {
            if self.sleep(deadline) == Woken::TimedOut {
                return false;
            }
            if mutation!("futex-wake-up") && self.try_take(HELD) {
                return true; // and it is not known whether others are still asleep
            }
        }
        true
    }
}

/// The methods of a lock that has the word of a [`Futex`], and its own way of waiting. For use in
/// an implementation of [`PlainLock`].
macro_rules! acquires_by_word {
    () => {
        #[inline]
        fn try_acquire(&self) -> bool {
            self.word.try_acquire()
        }

        $crate::lock::plain::waits_with_deadline!();

        #[inline]
        unsafe fn release(&self) {
            // SAFETY: this thread holds the lock (contract of this function), and so the word:
            // `try_acquire` takes nothing else.
            unsafe { self.word.release() }
        }
    };
}
pub(super) use acquires_by_word;

// SAFETY: the state leaves `FREE` by one thread's compare-and-swap or swap only, and returns to it
// in `release`; four bytes, and zero is `FREE`.
unsafe impl PlainLock for Futex {
    const INFO: LockInfo = LockInfo {
        name: "futex",
        summary: "three-state mutex that sleeps at once; what glibc does by default",
        source: "Drepper, Futexes Are Tricky, 2005",
        order: Order::Barging,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        self.try_take(HELD)
    }

    waits_with_deadline!();

    #[inline]
    unsafe fn release(&self) {
        // Release: partner of the Acquire in `try_take` and `mark`.
        if self.state.swap(FREE, order!(Release, "futex-release")) == CONTENDED {
            futex::wake(&raw const self.state, 1);
        }
    }
}

without_node!(Futex);

//! A word that is the lock, in front of a queue of waiters.
//!
//! An arriving thread may take the word if it is free, past the queue. Only the head of the queue
//! polls the word: it spins for a while and then sleeps on it. If others have overtaken it too
//! often, it *reserves* the lock, and no thread overtakes it any more.

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{clock, const_new, futex, hint, order, tuning};

/// A thread has the lock.
const HELD: u32 = 1;
/// The head of the queue sleeps on the word.
const ASLEEP: u32 = 2;
/// The lock is for the head of the queue.
const RESERVED: u32 = 4;

/// The word. Zero is free.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct TopWord(AtomicU32);

impl TopWord {
    const_new! {
        pub(super) fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// Whether no thread holds the lock, as a hint.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.0.load(Ordering::Relaxed) & HELD == 0 // Relaxed: an exchange decides
    }

    /// Acquires the word if it is free and not reserved; returns whether it did. `is_orphaned` says
    /// whether the head for which it is reserved is in the parent of a fork.
    #[inline]
    pub(super) fn try_acquire(&self, is_orphaned: impl FnOnce() -> bool) -> bool {
        // Acquire: partner of the Releases. Relaxed on failure: nothing was acquired.
        let acquire = order!(Acquire, "bypass-acquire");
        match self.0.compare_exchange(0, HELD, acquire, Ordering::Relaxed) {
            Ok(_) => true,
            Err(RESERVED) => is_orphaned() && self.try_reserved(),
            Err(_) => false,
        }
    }

    #[cold]
    fn try_reserved(&self) -> bool {
        // Acquire: partner of the Releases. Relaxed on failure: nothing was acquired.
        self.0.compare_exchange(RESERVED, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Acquires the word, as the only thread that sleeps on it. `prepare` is called before each
    /// time that it is polled.
    pub(super) fn wait_at_head(&self, mut prepare: impl FnMut()) {
        let mut bypassed = 0;
        loop {
            prepare();
            if self.spin() {
                return;
            }
            bypassed += 1;
            let reserve = if bypassed > tuning::lenience() { RESERVED } else { 0 };
            // Relaxed: a hint.
            let word = self.0.load(Ordering::Relaxed);
            let marked = word | ASLEEP | reserve;
            // Relaxed, both: the marks publish nothing; the kernel compares the word again before
            // the sleep.
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            if word & HELD != 0 && self.0.compare_exchange(word, marked, done, failed).is_ok() {
                futex::wait(&self.0, marked, None);
            }
        }
    }

    /// Polls the word for a while; returns whether it was acquired.
    fn spin(&self) -> bool {
        let (start, limit) = (clock::now(), tuning::spin_limit());
        loop {
            // Relaxed: a hint; the exchange decides and orders.
            let word = self.0.load(Ordering::Relaxed);
            // Only the head has set the marks, and it does not need them any more. Acquire: partner
            // of the Releases in `release`. Relaxed on failure: nothing was acquired.
            let acquire = order!(Acquire, "bypass-head-acquire");
            if word & HELD == 0
                && self.0.compare_exchange(word, HELD, acquire, Ordering::Relaxed).is_ok()
            {
                return true;
            }
            if clock::has_passed(start, limit) {
                return false;
            }
            hint::spin_loop();
        }
    }

    /// Clears the word, and wakes the head of the queue if it sleeps.
    #[inline]
    pub(super) fn release(&self) {
        // Release: partner of the Acquires in `try_acquire` and `spin`. Relaxed on failure: nothing
        // was released.
        let release = order!(Release, "bypass-release");
        if self.0.compare_exchange(HELD, 0, release, Ordering::Relaxed).is_err() {
            self.release_marked();
        }
    }

    #[cold]
    fn release_marked(&self) {
        // Release: partner of the Acquires in `try_acquire` and `spin`.
        let before = self.0.fetch_and(RESERVED, order!(Release, "bypass-marked-release"));
        if before & ASLEEP != 0 {
            futex::wake(&raw const self.0, 1);
        }
    }
}

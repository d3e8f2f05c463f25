//! A word at which one thread waits until another writes a message into it.
//!
//! The waiter spins for `tuning::spin_limit`, some microseconds, and then sleeps. So programs with
//! more threads than CPUs make progress, also with algorithms whose published form has waiters spin
//! for ever.

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Deadline, Woken, clock, const_new, futex, hint, mortal, order, tuning};

const SHUT: u32 = 0;
const SHUT_ASLEEP: u32 = 1;

/// The waiter has left: a thread that opens the gate has to dispose of it.
const ABANDONED: u32 = u32::MAX;

/// Messages are numbers from here on, below [`ABANDONED`].
pub(super) const MESSAGE: u32 = 2;

/// A word at which one thread waits until another writes a message into it. If all bytes are zero,
/// the gate is shut.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Gate {
    word: AtomicU32,
}

impl Gate {
    /// The least message.
    pub const MESSAGE: u32 = MESSAGE;

    /// What the word holds while its waiter sleeps.
    pub const ASLEEP: u32 = SHUT_ASLEEP;

    const_new! {
        /// A shut gate.
        pub fn new() -> Self {
            Self { word: AtomicU32::new(SHUT) }
        }
    }

    /// Waits for the message.
    #[inline]
    pub fn wait(&self) -> u32 {
        self.wait_after(tuning::spin_limit())
    }

    /// Does the same as `wait`, but polls for `limit` ticks before it sleeps.
    #[inline]
    pub fn wait_after(&self, limit: u64) -> u32 {
        match self.spin(limit) {
            Some(message) => message,
            None => self.sleep(None).expect("without a deadline no thread leaves"),
        }
    }

    /// Waits for the message until the deadline. If the deadline passes first, returns none and
    /// leaves the gate: from then on it belongs to the thread that [opens](Self::open) it.
    pub(super) fn wait_until(&self, deadline: Option<Deadline>) -> Option<u32> {
        self.spin(tuning::spin_limit()).or_else(|| self.sleep(deadline))
    }

    /// Polls for the message for this many ticks at most, and at least once.
    #[inline]
    pub fn spin(&self, limit: u64) -> Option<u32> {
        let start = clock::now();
        loop {
            // Acquire: partner of the Release in `open`.
            let word = self.word.load(order!(Acquire, "gate-spin"));
            if word >= MESSAGE {
                return Some(word);
            }
            if clock::has_passed(start, limit) {
                return None;
            }
            hint::spin_loop();
        }
    }

    /// Announces that the waiter goes to sleep, unless the message is there. Without a message the
    /// waiter then sleeps on [`word`](Self::word) as long as that is [`ASLEEP`](Self::ASLEEP).
    pub fn doze(&self) -> Option<u32> {
        // Relaxed on success: says only that this thread sleeps. Acquire on failure: partner of the
        // Release in `open`, for the message.
        let (done, opened) = (Ordering::Relaxed, order!(Acquire, "gate-sleep"));
        match self.word.compare_exchange(SHUT, SHUT_ASLEEP, done, opened) {
            Err(message) if message >= MESSAGE => Some(message),
            // In the child of a fork, a thread of the parent may have slept here.
            Ok(_) | Err(_) => None,
        }
    }

    /// The message, if it is there.
    #[inline]
    pub fn poll(&self) -> Option<u32> {
        // Acquire: partner of the Release in `open`.
        let word = self.word.load(order!(Acquire, "gate-woken"));
        (word >= MESSAGE).then_some(word)
    }

    /// The word, for a waiter that has its own way of sleeping.
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// Shuts the gate for the next message. To be called by the waiter, which has got a message,
    /// before any thread can send another.
    #[inline]
    pub fn shut(&self) {
        // Relaxed: whatever lets the next sender know orders this before it.
        self.word.store(SHUT, Ordering::Relaxed);
    }

    #[cold]
    fn sleep(&self, deadline: Option<Deadline>) -> Option<u32> {
        let mut message = self.doze();
        loop {
            message = message.or_else(|| self.poll());
            if message.is_some() {
                return message;
            }
            if futex::wait(&self.word, SHUT_ASLEEP, deadline) == Woken::TimedOut && self.abandon() {
                return None;
            }
        }
    }

    /// Leaves the gate to the thread that opens it, unless the message is there.
    fn abandon(&self) -> bool {
        // Release: partner of the AcqRel in `open`. Relaxed on failure: `sleep` reads it again.
        let left = order!(Release, "gate-abandon");
        self.word.compare_exchange(SHUT_ASLEEP, ABANDONED, left, Ordering::Relaxed).is_ok()
    }

    /// Writes the message; returns whether a waiter will read it. If so, the gate's memory may be
    /// freed at once. If not, the waiter has left.
    ///
    /// # Safety
    ///
    /// The gate is valid until it has the message, and no thread has opened it.
    #[inline]
    pub unsafe fn open(gate: *const Self, message: u32) -> bool {
        // SAFETY: the gate is valid until it has a message (contract of this function), and only
        // the caller sends one: so it is valid when its address is taken.
        let word = unsafe { &raw const (*gate).word };
        // AcqRel: Release, partner of the Acquires in `spin`, `doze` and `poll`; Acquire, partner
        // of the Release in `abandon`. A waiter that sleeps, or leaves, has said so by a
        // compare-and-swap of the same word, so that one of the two sees the other.
        // SAFETY: the gate is there until the swap has taken effect (contract of this function);
        // `word` is not read after it, only its address is used.
        let before = unsafe { (*word).swap(message, order!(AcqRel, "gate-open")) };
        if before == SHUT_ASLEEP {
            futex::wake(word, 1);
        }
        before != ABANDONED
    }
}

mortal!(Gate { word });

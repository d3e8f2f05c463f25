//! A word at which one thread waits until another writes a message into it.
//!
//! The waiter spins for `tuning::spin_limit`, some microseconds, and then sleeps: so programs with more threads than CPUs
//! get on, under algorithms that were published with waiters which spin for ever.

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{clock, const_new, futex, hint, mortal, order, tuning};

const SHUT: u32 = 0;
const SHUT_ASLEEP: u32 = 1;

/// Messages are numbers from here on.
pub(super) const MESSAGE: u32 = 2;

/// The word. All zero is shut.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Gate {
    word: AtomicU32,
}

impl Gate {
    const_new! {
        pub(super) fn new() -> Self {
            Self { word: AtomicU32::new(SHUT) }
        }
    }

    /// Waits for the message.
    #[inline]
    pub(super) fn wait(&self) -> u32 {
        let (start, limit) = (clock::now(), tuning::spin_limit());
        loop {
            // Acquire: partner of the Release in `open`.
            let word = self.word.load(order!(Acquire, "gate-spin"));
            if word >= MESSAGE {
                return word;
            }
            if clock::has_passed(start, limit) {
                return self.sleep();
            }
            hint::spin_loop();
        }
    }

    #[cold]
    fn sleep(&self) -> u32 {
        // Relaxed on success: says only that this thread sleeps. Acquire on failure: there is a message, as in `wait`.
        let (done, opened) = (Ordering::Relaxed, order!(Acquire, "gate-sleep"));
        match self.word.compare_exchange(SHUT, SHUT_ASLEEP, done, opened) {
            Err(message) if message >= MESSAGE => return message,
            // In the child of a fork, somebody may have slept here in the parent.
            Ok(_) | Err(_) => {}
        }
        loop {
            // Acquire: as in `wait`.
            let word = self.word.load(order!(Acquire, "gate-woken"));
            if word >= MESSAGE {
                return word;
            }
            futex::wait(&self.word, SHUT_ASLEEP, None);
        }
    }

    /// Writes the message. From then on the gate may be gone.
    ///
    /// # Safety
    ///
    /// The gate is there until the message is, and nobody has opened it.
    #[inline]
    pub(super) unsafe fn open(gate: *const Self, message: u32) {
        // SAFETY: by the caller's word.
        let word = unsafe { &raw const (*gate).word };
        // Release: partner of the Acquires in `wait` and `sleep`. A waiter that sleeps has said so by a
        // compare-and-swap of the same word, so that one of the two sees the other.
        // SAFETY: as above.
        if unsafe { (*word).swap(message, order!(Release, "gate-open")) } == SHUT_ASLEEP {
            futex::wake(word, 1);
        }
    }
}

mortal!(Gate { word });

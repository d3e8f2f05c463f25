//! `ticket`: draw a number, and wait until it is called.
//!
//! # Idea
//!
//! Two counters: the next number to draw, and the number that is served. Whoever draws the served number has the
//! lock; a release serves the next. So threads are served strictly in the order in which they drew.
//!
//! # Source
//!
//! D. P. Reed and R. K. Kanodia, "Synchronization with Eventcounts and Sequencers", CACM 22(2), 1979; as a spin lock,
//! J. M. Mellor-Crummey and M. L. Scott, ACM TOCS 9(1), 1991, Section 2.2.
//!
//! # Memory order
//!
//! A waiter that reads its number from `serving` (Acquire) reads the store of the release that called it (Release).
//! Drawing orders nothing by itself, so the draw is Relaxed and followed by that read.
//!
//! # Cost
//!
//! Uncontended, one addition and one store. All waiters read one line, which each release takes away from all of
//! them: a transfer for each waiter and hand-off.
//!
//! # When not to use it
//!
//! With more runnable threads than CPUs: if the thread whose turn it is does not run, nobody can go on, and the others
//! never give up their CPUs. Each hand-off may take a time slice.

use super::inline::{InlineLock, without_node};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{const_new, hint, order, process};
use crate::{LockInfo, Order};

/// The ticket lock. Up to 2^32 - 1 threads may wait.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Ticket {
    /// The number that is drawn next.
    next: AtomicU32,
    /// The number that has the lock; if it is `next`, nobody has.
    serving: AtomicU32,
    /// The [`process::generation`] in which the lock was acquired last. Protected by the lock.
    generation: AtomicU32,
}

impl Ticket {
    const_new! {
        /// A lock that nobody holds.
        pub fn new() -> Self {
            Self {
                next: AtomicU32::new(0),
                serving: AtomicU32::new(0),
                generation: AtomicU32::new(0),
            }
        }
    }

    fn note_generation(&self) {
        // Relaxed: protected by the lock.
        self.generation.store(process::generation(), Ordering::Relaxed);
    }
}

// SAFETY: a number is drawn by one thread only, and served from the release of the number before it to its own;
// twelve bytes, and zero is: number 0 is served, and not drawn.
unsafe impl InlineLock for Ticket {
    const INFO: LockInfo = LockInfo {
        name: "ticket",
        summary: "draw a number and wait until it is served; never gives up the CPU",
        source: "Reed and Kanodia, CACM 1979; Mellor-Crummey and Scott, TOCS 1991",
        order: Order::Fifo,
        blocks: false,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        // Acquire: partner of the Release in `release`.
        let serving = self.serving.load(order!(Acquire, "ticket-try-acquire"));
        // Relaxed: drawing the served number takes the lock; the load above has ordered it. That number is drawn at
        // most once, so that it is still served if the exchange succeeds.
        let next = serving.wrapping_add(1);
        let taken =
            self.next.compare_exchange(serving, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if taken {
            self.note_generation();
        }
        taken
    }

    #[cold]
    fn acquire_contended(&self) {
        // Relaxed: the load below orders.
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        // Acquire: partner of the Release in `release`.
        while self.serving.load(order!(Acquire, "ticket-wait-acquire")) != mine {
            hint::spin_loop();
        }
        self.note_generation();
    }

    #[inline]
    unsafe fn release(&self) {
        // Relaxed: only the holder writes it.
        let served = self.serving.load(Ordering::Relaxed).wrapping_add(1);
        // Relaxed, both: protected by the lock.
        if self.generation.load(Ordering::Relaxed) != process::generation() {
            // The child of a fork: the threads that drew the other numbers are in the parent.
            self.next.store(served, Ordering::Relaxed);
        }
        // Release: partner of the Acquires above.
        self.serving.store(served, order!(Release, "ticket-release"));
    }
}

without_node!(Ticket);

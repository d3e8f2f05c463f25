//! `ticket`: draw a number, and wait until it is called.
//!
//! # Idea
//!
//! Two counters: the next number to draw, and the number that is served. A thread that draws the
//! served number has the lock; a release serves the next. So threads are served strictly in the
//! order in which they drew.
//!
//! # Source
//!
//! D. P. Reed and R. K. Kanodia, "Synchronization with Eventcounts and Sequencers", CACM 22(2),
//! 1979; as a spin lock, J. M. Mellor-Crummey and M. L. Scott, ACM TOCS 9(1), 1991, Section 2.2.
//!
//! # Memory order
//!
//! A waiter that reads its number from `serving` (Acquire) reads the store of the release that
//! called it (Release). Drawing orders nothing by itself, so the draw is Relaxed and followed by
//! that read.
//!
//! # Cost
//!
//! Uncontended: one addition and one store. All waiters read one line, which each release
//! invalidates in all their caches: a transfer for each waiter in each hand-off.
//!
//! # When not to use it
//!
//! With more runnable threads than CPUs: if the next thread in order does not run, no other one can
//! continue, and the others never give up their CPUs. Each hand-off may take a time slice.

use super::numbers::Numbers;
use super::plain::{PlainLock, without_node};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{const_new, hint, order};
use crate::{LockInfo, Order};

/// The ticket lock. Up to 2^32 - 1 threads may wait.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Ticket {
    numbers: Numbers,
    /// The number of the thread that has the lock; if it is the next to be drawn, the lock is free.
    serving: AtomicU32,
}

impl Ticket {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { numbers: Numbers::new(), serving: AtomicU32::new(0) }
        }
    }
}

// SAFETY: a number is drawn by one thread only, and served from the release of the number before it
// to its own; sixteen bytes, and zero is: number 0 is served, and not drawn.
unsafe impl PlainLock for Ticket {
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
        // This check is enough: the number is drawn at most once, so it is still served if it is
        // drawn here.
        self.numbers.try_draw(serving)
    }

    #[cold]
    fn acquire_contended(&self) {
        let mine = self.numbers.draw(&self.serving);
        // Acquire: partner of the Release in `release`.
        while self.serving.load(order!(Acquire, "ticket-wait-acquire")) != mine {
            hint::spin_loop();
        }
    }

    #[inline]
    unsafe fn release(&self) {
        self.numbers.void_those_of_the_parent(&self.serving);
        // Relaxed: only the holder writes it.
        let served = self.serving.load(Ordering::Relaxed).wrapping_add(1);
        // Release: partner of the Acquires above.
        self.serving.store(served, order!(Release, "ticket-release"));
    }
}

without_node!(Ticket);

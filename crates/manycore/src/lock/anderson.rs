//! `anderson`: an array of slots; in each of them one thread waits for the lock.
//!
//! # Idea
//!
//! An arriving thread draws a number, and waits at the slot of that number, a line of its own. A
//! release calls the next number in the next slot. As in `ticket`, threads are served in the order
//! in which they drew; but a release accesses a line of the next thread only.
//!
//! # Source
//!
//! T. E. Anderson, "The Performance of Spin Lock Alternatives for Shared-Memory Multiprocessors",
//! IEEE TPDS 1(1), 1990. There a slot is a flag, and no more threads than slots may come. Here it
//! holds the number that was called last, so that more than [`SLOTS`] threads may share slots. And
//! a waiter sleeps after some microseconds.
//!
//! # Fork
//!
//! As in `ticket`, numbers that were drawn in another process are void.
//!
//! # Memory order
//!
//! A waiter that reads its number in its slot (Acquire) reads the swap of the release that called
//! it (Release). Drawing orders nothing by itself. A waiter that sleeps has marked its slot by a
//! compare-and-swap of the word that the call swaps, so that one of the two sees the other.
//!
//! # Cost
//!
//! Uncontended: a compare-and-swap to take a slot, and a swap to release. Contended: one line
//! transfer for the slot in each hand-off, and one for the counter by each thread. The lock is
//! large: 8 KiB.
//!
//! # When not to use it
//!
//! Where there are many locks, because each has all its slots. With more runnable threads than
//! CPUs: no thread may overtake the next one in order.

use super::numbers::Numbers;
use super::plain::{PlainLock, without_node};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{CachePadded, array_of, clock, const_new, futex, hint, order, tuning};
use crate::{LockInfo, Order};

/// How many threads can each wait at a line of their own. It is a power of two, so that numbers may
/// start again from 0.
pub const SLOTS: usize = if cfg!(loom) { 2 } else { 64 };

/// A thread sleeps at the slot. The lower half is the number that was called last.
const SLEEPERS: u64 = 1 << 32;

/// Anderson's array lock.
#[derive(Debug)]
pub struct Anderson {
    numbers: CachePadded<Numbers>,
    /// The holder's number. If it has not been drawn, the lock is free. The holder writes it.
    serving: AtomicU32,
    slots: [CachePadded<AtomicU64>; SLOTS],
}

impl Default for Anderson {
    fn default() -> Self {
        Self::new()
    }
}

impl Anderson {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self {
                numbers: CachePadded(Numbers::new()),
                serving: AtomicU32::new(0),
                slots: array_of!(CachePadded(AtomicU64::new(0)); SLOTS),
            }
        }
    }

    fn slot(&self, number: u32) -> &AtomicU64 {
        &self.slots[number as usize % SLOTS]
    }

    /// Waits until the number is called.
    fn wait(&self, number: u32) {
        let (start, limit) = (clock::now(), tuning::spin_limit());
        let slot = self.slot(number);
        // Acquire: partner of the Release in `release`.
        while slot.load(order!(Acquire, "anderson-spin")) as u32 != number {
            if clock::has_passed(start, limit) {
                return sleep(slot, number);
            }
            hint::spin_loop();
        }
    }
}

#[cold]
fn sleep(slot: &AtomicU64, number: u32) {
    loop {
        // Acquire: partner of the Release in `release`.
        let word = slot.load(order!(Acquire, "anderson-woken"));
        if word as u32 == number {
            return;
        }
        let marked = word | SLEEPERS;
        // Relaxed, both: says only that this thread sleeps.
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        if word == marked || slot.compare_exchange(word, marked, done, failed).is_ok() {
            futex::wait_low(slot, word as u32, None);
        }
    }
}

// SAFETY: one thread only draws a number, and the release of the number before calls it. All zero
// bytes are a free lock: number 0 is called, in slot 0, and not drawn yet.
unsafe impl PlainLock for Anderson {
    const INFO: LockInfo = LockInfo {
        name: "anderson",
        summary: "draw a number and wait at its slot until it is called; spins, then sleeps",
        source: "Anderson, TPDS 1990",
        order: Order::Fifo,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        let next = self.numbers.next();
        // Acquire: partner of the Release in `release`. That is enough: the number is drawn at most
        // once.
        self.slot(next).load(order!(Acquire, "anderson-try")) as u32 == next
            && self.numbers.try_draw(next)
    }

    #[cold]
    fn acquire_contended(&self) {
        self.wait(self.numbers.draw(&self.serving));
    }

    #[inline]
    unsafe fn release(&self) {
        self.numbers.void_those_of_the_parent(&self.serving);
        // Relaxed, both: only the holder reads and writes it.
        let next = self.serving.load(Ordering::Relaxed).wrapping_add(1);
        self.serving.store(next, Ordering::Relaxed);
        let slot = self.slot(next);
        // Release: partner of the Acquires in `try_acquire`, `wait` and `sleep`.
        if slot.swap(u64::from(next), order!(Release, "anderson-grant")) & SLEEPERS != 0 {
            futex::wake_low(slot, u32::MAX); // all: more threads than one may share the slot
        }
    }
}

without_node!(Anderson);

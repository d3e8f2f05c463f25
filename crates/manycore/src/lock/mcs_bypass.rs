//! `mcs-bypass`: a queue like that of `mcs`, which those who run may bypass while its head sleeps.
//!
//! # Idea
//!
//! A strict queue with more threads than CPUs waits, at every hand-off, for the one thread whose turn it is to be
//! scheduled. Here the lock is a word, and the queue is that of the threads which wait for the word. Whoever comes may
//! take the word if it is free, past the queue; else it joins the queue. Only the head of the queue watches the word:
//! it spins for a while and then sleeps on it. A release frees the word and wakes the head if it sleeps; until the
//! head runs, others may have the lock. If they have overtaken it too often, the head *reserves* the lock, and nobody
//! bypasses it any more.
//!
//! # Source
//!
//! The queue: Mellor-Crummey and Scott, ACM TOCS 9(1), 1991. A word before it: the queued spin lock of Linux
//! (W. Long and P. Zijlstra, 2014) and D. Dice and A. Kogan, "Malthusian locks", EuroSys 2017, Section 4. The bound
//! on overtaking is ours.
//!
//! # Memory order
//!
//! Exclusion is by the word alone: acquired by a compare-and-swap that sets `HELD` (Acquire), released by a
//! read-modify-write that clears it (Release). In the queue, the swap of the tail and the link make the nodes visible.
//! Passing on the place at the head needs no order: it is done by a holder of the lock, and the new head leaves only
//! when it has acquired the word after that. A head that sleeps has set `ASLEEP` in the word; the release that clears
//! the mark wakes it.
//!
//! # Cost
//!
//! Uncontended, two compare-and-swaps. Nodes are on the stacks of the waiters, since the holder needs none.
//!
//! # When not to use it
//!
//! Where service has to be in order of arrival.

use core::ptr::null_mut;

use super::inline::{InlineLock, without_node};
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{clock, const_new, futex, hint, order, process};
use crate::{LockInfo, Order};

/// Somebody has the lock.
const HELD: u32 = 1;
/// The head of the queue sleeps on the word.
const ASLEEP: u32 = 2;
/// The lock is for the head of the queue.
const RESERVED: u32 = 4;

/// How long a waiter spins before it sleeps, in ticks: a few microseconds.
const SPIN: u64 = if cfg!(loom) { 1 } else { 20_000 };
/// How often the head may be woken in vain before it reserves the lock.
const BYPASSES: u32 = if cfg!(loom) { 1 } else { 16 };

const QUEUED: u32 = 0;
const QUEUED_ASLEEP: u32 = 1;
const HEAD: u32 = 2;

/// A waiter's place in the queue.
#[derive(Debug)]
#[repr(align(64))]
struct Node {
    next: AtomicPtr<Node>,
    state: AtomicU32,
    /// Stands for the node's memory, which its owner uses for something else as soon as it is head: so the model
    /// checker sees that nobody else touches it then.
    memory: UnsafeCell<()>,
}

/// The lock with a queue that can be bypassed.
#[derive(Debug)]
#[repr(C)]
pub struct McsBypass {
    word: AtomicU32,
    /// The [`process::generation`] in which the lock was acquired last. Protected by the lock.
    generation: AtomicU32,
    tail: AtomicPtr<Node>,
}

impl Default for McsBypass {
    fn default() -> Self {
        Self::new()
    }
}

impl McsBypass {
    const_new! {
        /// A lock that nobody holds.
        pub fn new() -> Self {
            Self {
                word: AtomicU32::new(0),
                generation: AtomicU32::new(0),
                tail: AtomicPtr::new(null_mut()),
            }
        }
    }

    /// Waits in the queue, and at its head for the word.
    #[cold]
    fn wait(&self) {
        let node = Node {
            next: AtomicPtr::new(null_mut()),
            state: AtomicU32::new(QUEUED),
            memory: UnsafeCell::new(()),
        };
        let this = (&raw const node).cast_mut();
        // AcqRel: Release, partner of the Acquire in the successor's swap: the node is initialised; Acquire likewise.
        let before = self.tail.swap(this, order!(AcqRel, "bypass-swap"));
        if !before.is_null() {
            // Release: partner of the Acquire in `pass_head`.
            // SAFETY: the predecessor stays until it has seen its successor.
            unsafe { (*before).next.store(this, order!(Release, "bypass-link")) };
            node.wait_for_head();
        }
        self.wait_at_head();
        self.pass_head(&node);
        node.memory.with_mut(|_| ());
    }

    /// Acquires the word, as the only thread that sleeps on it.
    fn wait_at_head(&self) {
        let mut bypassed = 0;
        loop {
            if self.spin() {
                return;
            }
            bypassed += 1;
            let reserve = if bypassed > BYPASSES { RESERVED } else { 0 };
            // Relaxed: a hint.
            let word = self.word.load(Ordering::Relaxed);
            let marked = word | ASLEEP | reserve;
            // Relaxed, both: the marks publish nothing; the kernel compares the word again before the sleep.
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            if word & HELD != 0 && self.word.compare_exchange(word, marked, done, failed).is_ok() {
                futex::wait(&self.word, marked, None);
            }
        }
    }

    /// Polls the word for a while; says whether it was acquired.
    fn spin(&self) -> bool {
        let start = clock::now();
        loop {
            // Relaxed: a hint; the exchange decides and orders.
            let word = self.word.load(Ordering::Relaxed);
            // Only the head has set the marks, and it needs them no more.
            // Acquire: partner of the Releases in `release`. Relaxed on failure: nothing was acquired.
            let acquire = order!(Acquire, "bypass-head-acquire");
            if word & HELD == 0
                && self.word.compare_exchange(word, HELD, acquire, Ordering::Relaxed).is_ok()
            {
                self.note_generation();
                return true;
            }
            if clock::now().wrapping_sub(start) > SPIN {
                return false;
            }
            hint::spin_loop();
        }
    }

    /// Makes the next in the queue its head, as the holder of the lock.
    fn pass_head(&self, node: &Node) {
        // Acquire, here and below: partner of the Release in `wait`.
        let mut next = node.next.load(order!(Acquire, "bypass-next"));
        if next.is_null() {
            let this = core::ptr::from_ref(node).cast_mut();
            // Relaxed, both: who finds the queue empty looks at nothing of ours but the word.
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            if self.tail.compare_exchange(this, null_mut(), done, failed).is_ok() {
                return;
            }
            while next.is_null() {
                hint::spin_loop();
                next = node.next.load(order!(Acquire, "bypass-next"));
            }
        }
        // SAFETY: the next waits in its node until the swap has taken effect.
        let state = unsafe {
            (*next).memory.with(|_| ());
            &raw const (*next).state
        };
        // Relaxed: this thread holds the word, and the next head leaves only after it has acquired the word from it.
        // SAFETY: as above.
        if unsafe { (*state).swap(HEAD, Ordering::Relaxed) } == QUEUED_ASLEEP {
            futex::wake(state, 1);
        }
    }

    fn note_generation(&self) {
        // Relaxed: protected by the lock.
        self.generation.store(process::generation(), Ordering::Relaxed);
    }

    /// Frees a word that has marks, and wakes the head if it sleeps.
    #[cold]
    fn release_marked(&self) {
        // Release: partner of the Acquires in `try_acquire` and `spin`.
        let before = self.word.fetch_and(RESERVED, order!(Release, "bypass-marked-release"));
        if before & ASLEEP != 0 {
            futex::wake(&raw const self.word, 1);
        }
    }
}

impl Node {
    /// Waits until this is the head of the queue.
    fn wait_for_head(&self) {
        let start = clock::now();
        // Relaxed, here and below: the head has nothing to see but the word.
        while self.state.load(Ordering::Relaxed) != HEAD {
            if clock::now().wrapping_sub(start) > SPIN {
                return self.sleep();
            }
            hint::spin_loop();
        }
    }

    #[cold]
    fn sleep(&self) {
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed); // Relaxed, both: as above
        if self.state.compare_exchange(QUEUED, QUEUED_ASLEEP, done, failed).is_err() {
            return;
        }
        // Relaxed: as above.
        while self.state.load(Ordering::Relaxed) != HEAD {
            futex::wait(&self.state, QUEUED_ASLEEP, None);
        }
    }
}

// SAFETY: `HELD` is set only by a compare-and-swap from a word without it, and cleared only in a release; sixteen
// bytes, and zero is free with an empty queue.
unsafe impl InlineLock for McsBypass {
    const INFO: LockInfo = LockInfo {
        name: "mcs-bypass",
        summary: "mcs whose queue may be bypassed, so often, while its head sleeps",
        source: "Mellor-Crummey and Scott, TOCS 1991; Dice and Kogan, EuroSys 2017; bound ours",
        order: Order::Barging,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        // Acquire: partner of the Releases. Relaxed on failure: nothing was acquired.
        let acquire = order!(Acquire, "bypass-acquire");
        let taken = self.word.compare_exchange(0, HELD, acquire, Ordering::Relaxed).is_ok();
        if taken {
            self.note_generation();
        }
        taken
    }

    #[cold]
    fn acquire_contended(&self) {
        self.wait();
    }

    #[inline]
    unsafe fn release(&self) {
        // Relaxed: protected by the lock.
        if self.generation.load(Ordering::Relaxed) != process::generation() {
            // The child of a fork has no thread of those that wait in this queue.
            // Release: partner of the Acquires in `wait`, and then of those of the word.
            self.tail.store(null_mut(), Ordering::Release);
            self.word.store(0, Ordering::Release);
            return;
        }
        // Release: partner of the Acquires in `try_acquire` and `spin`. Relaxed on failure: nothing was released.
        let release = order!(Release, "bypass-release");
        if self.word.compare_exchange(HELD, 0, release, Ordering::Relaxed).is_err() {
            self.release_marked();
        }
    }
}

without_node!(McsBypass);

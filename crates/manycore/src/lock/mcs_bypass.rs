//! `mcs-bypass`: a queue like that of `mcs`, which running threads may bypass while its head
//! sleeps.
//!
//! # Idea
//!
//! In a strict queue with more threads than CPUs, each hand-off waits until a certain thread is
//! scheduled. Here the lock is a word, and threads queue for the word. A thread that comes may take
//! the word if it is free, past the queue; otherwise it joins the queue. Only the head of the queue
//! polls the word: it spins for a while and then sleeps on it. A release clears the word and wakes
//! the head if it sleeps. Until the head runs, others may have the lock. If they have overtaken it
//! too often, the head *reserves* the lock, and no thread bypasses it any more.
//!
//! # Source
//!
//! The queue: Mellor-Crummey and Scott, ACM TOCS 9(1), 1991. A word before the queue: the queued
//! spin lock of Linux (W. Long and P. Zijlstra, 2014) and D. Dice, "Malthusian Locks", EuroSys
//! 2017, Section 4. The bound on overtaking is ours.
//!
//! # Memory order
//!
//! Exclusion is by the word alone, see [`TopWord`]: acquired by a compare-and-swap (Acquire),
//! released by a read-modify-write that clears it (Release). In the queue, the swap of the tail and
//! the link make the nodes visible. To make the next thread the head needs no order: a holder of
//! the lock does it, and the new head leaves only when it has acquired the word after that. A head
//! that sleeps has marked the word; the release that clears the mark wakes it.
//!
//! # Fork
//!
//! In a child of a fork, the tail still points to the node of a parent's thread. The first thread
//! that comes becomes the head, and a reservation of the parent's head is void.
//!
//! # Cost
//!
//! Uncontended, two compare-and-swaps. Nodes are on the stacks of the waiters, since the holder
//! needs none.
//!
//! # When not to use it
//!
//! Where service has to be in order of arrival.

use super::link::{Link, Linked};
use super::plain::{PlainLock, without_node};
use super::top_word::TopWord;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{clock, const_new, futex, hint, mortal, mutation, order, process, tuning};
use crate::{LockInfo, Order};

const QUEUED: u32 = 0;
const QUEUED_ASLEEP: u32 = 1;
const HEAD: u32 = 2;

/// A waiter's node in the queue.
#[derive(Debug)]
#[repr(align(64))]
struct Node {
    next: Link<Node>,
    state: AtomicU32,
}

mortal!(Node { state });

/// The lock with a queue that can be bypassed.
#[derive(Debug)]
#[repr(C)]
pub struct McsBypass {
    word: TopWord,
    tail: Link<Node>,
}

impl Default for McsBypass {
    fn default() -> Self {
        Self::new()
    }
}

impl McsBypass {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { word: TopWord::new(), tail: Link::new() }
        }
    }

    /// Waits in the queue until this is the head, and then for the word.
    #[cold]
    fn wait(&self) {
        let node = Node { next: Link::new(), state: AtomicU32::new(QUEUED) };
        let this = (&raw const node).cast_mut();
        // AcqRel: Release, partner of the Acquire in the successor's swap, for the initialised
        // node; Acquire, for the predecessor's node. Behind a ghost this one is at the head.
        if let Linked::Node(before) = self.tail.swap(this, order!(AcqRel, "bypass-swap")) {
            // Release: partner of the Acquire in `pass_head`.
            // SAFETY: the predecessor stays in `wait`, and so on its stack, until `pass_head` has
            // seen its successor, which this store shows it.
            unsafe { (*before).next.store(this, order!(Release, "bypass-link")) };
            node.wait_for_head();
        }
        self.word.wait_at_head(|| ());
        self.pass_head(&node);
    }

    /// Makes the next in the queue its head, as the holder of the lock.
    fn pass_head(&self, node: &Node) {
        let next = loop {
            // Acquire: partner of the Release in `wait`.
            if let Linked::Node(next) = node.next.load(order!(Acquire, "bypass-next")) {
                break next;
            }
            // Relaxed: a thread that finds the queue empty reads nothing of ours but the word.
            let this = core::ptr::from_ref(node).cast_mut();
            if self.tail.clear(this, process::generation(), Ordering::Relaxed) {
                return;
            }
            if mutation!("bypass-forgets") {
                return; // and the waiter that is about to link itself never becomes head
            }
            hint::spin_loop();
        };
        // SAFETY: the next stays in `wait`, and its node on its stack, until the swap below has
        // made it the head.
        let state = unsafe { &raw const (*next).state };
        // Relaxed: this thread holds the word, and the next head leaves only after it has acquired
        // the word from it.
        // SAFETY: the next thread's node stays on its stack until this swap; after it only the
        // address is used.
        if unsafe { (*state).swap(HEAD, Ordering::Relaxed) } == QUEUED_ASLEEP {
            futex::wake(state, 1);
        }
    }
}

impl Node {
    /// Waits until this is the head of the queue.
    fn wait_for_head(&self) {
        let (start, limit) = (clock::now(), tuning::spin_limit());
        // Relaxed, here and below: the head has nothing to see but the word.
        while self.state.load(Ordering::Relaxed) != HEAD {
            if clock::has_passed(start, limit) {
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

// SAFETY: the lock is held while the word is, which only a compare-and-swap from a free word takes,
// until a release. Sixteen bytes, and zero is a free word with an empty queue.
unsafe impl PlainLock for McsBypass {
    const INFO: LockInfo = LockInfo {
        name: "mcs-bypass",
        summary: "mcs whose queue may be bypassed, so often, while its head sleeps",
        source: "Mellor-Crummey and Scott, TOCS 1991; Dice, EuroSys 2017; bound ours",
        order: Order::Barging,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        // Relaxed: not followed.
        self.word.try_acquire(|| matches!(self.tail.load(Ordering::Relaxed), Linked::Ghost))
    }

    #[cold]
    fn acquire_contended(&self) {
        self.wait();
    }

    #[inline]
    unsafe fn release(&self) {
        self.word.release();
    }
}

without_node!(McsBypass);

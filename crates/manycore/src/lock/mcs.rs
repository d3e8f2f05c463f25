//! `mcs`: a queue of waiters; each waiter watches a line of its own.
//!
//! # Idea
//!
//! The lock is a pointer to the last node of a queue. A thread that comes swaps its node in and
//! links it behind the node that it got out. Then it waits at its own node, which only its
//! predecessor writes, to hand the lock over. So a hand-off is one line transfer however many wait,
//! and service is strictly in order of arrival.
//!
//! # Source
//!
//! J. M. Mellor-Crummey and M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", ACM TOCS 9(1), 1991. There a waiter spins for ever. Here it spins for
//! `tuning::spin_limit`, some microseconds, and then sleeps in the queue, so that programs with
//! more threads than CPUs make progress. A waiter whose deadline passes leaves its node in the
//! queue; a thread that would hand it the lock removes the node. This is as in B. He, W. N. Scherer
//! and M. L. Scott, "Preemption Adaptivity in Time-Published Queue-Based Spin Locks", HiPC 2005.
//!
//! In place of another lock, the caller has no node for the lock. Then the node comes from
//! [`sync::node`](crate::sync::node) and is remembered beside the tail.
//!
//! # Fork
//!
//! The child of a fork has none of the waiting threads. If its only thread holds the lock, the
//! first thread that comes in the child finds a ghost at the tail and links itself behind the
//! holder. When the holder releases, its node shows that its earlier link is invalid. (This does
//! not hold where callers provide their nodes: such a lock must have no waiters when it is held
//! over a fork.)
//!
//! # Memory order
//!
//! The swap of the tail publishes the node to the successor (Release) and sees the predecessor's
//! (Acquire); the successor's link (Release) shows its node to the holder (Acquire). The hand-over
//! is a message at the waiter's [gate](super::Gate); where no thread waits, the release empties the
//! tail (Release) and the next swap finds it empty (Acquire). A waiter that leaves announces it by
//! a compare-and-swap of its gate (Release), before the hand-over takes its node away (Acquire).
//!
//! # Cost
//!
//! Uncontended: a swap and a compare-and-swap; where the caller provides no node, also taking and
//! returning one. Contended: one or two line transfers for each hand-off, with any number of CPUs.
//!
//! # When not to use it
//!
//! With more runnable threads than CPUs: the next thread in order may not be running, and no thread
//! may overtake it, so each hand-off takes a wake-up. `mcs-bypass` overtakes.

use core::marker::PhantomPinned;
use core::ptr::{NonNull, null_mut};

use super::gate::MESSAGE;
use super::plain::{PlainLock, lock_api_form};
use super::queue::{Queue, QueueNode};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{Deadline, const_new, hint, node};
use crate::{LockInfo, Order, RawLock};

/// To the one that gets the lock.
const GRANTED: u32 = MESSAGE;

/// Other threads write to the node while its owner still has a `&mut` to it, which is allowed only
/// in a type that cannot be assumed to move.
type Pinned = QueueNode<PhantomPinned>;

/// A waiter's or the holder's node in the queue.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct McsNode(Pinned);

/// The MCS lock.
#[derive(Debug)]
#[repr(C)]
pub struct Mcs {
    queue: Queue<PhantomPinned>,
    /// The holder's node if it comes from `sync::node`. The holder writes this field.
    holder: AtomicPtr<Pinned>,
}

impl Default for Mcs {
    fn default() -> Self {
        Self::new()
    }
}

impl Mcs {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { queue: Queue::new(), holder: AtomicPtr::new(null_mut()) }
        }
    }

    // Relaxed, both. They are read by the thread that wrote them, and by a thread that finds a
    // ghost at the end of the queue. In that process only the forking thread has held the lock.

    fn holder(&self) -> *mut Pinned {
        self.holder.load(Ordering::Relaxed) // Relaxed: as said
    }

    fn note_holder(&self, qnode: *mut Pinned) {
        self.holder.store(qnode, Ordering::Relaxed); // Relaxed: as said
    }

    /// As `enter`, with a node of the thread's own.
    #[cold]
    fn enter_inline(&self, deadline: Option<Deadline>) -> bool {
        let qnode: NonNull<Pinned> = node::take();
        // SAFETY: `node::take` has just made it, no other thread knows it, and if it enters only
        // `release` gives it back; all leave the queue by `hand_over`.
        let entered = unsafe { self.queue.enter_until(qnode.as_ptr(), || self.holder(), deadline) };
        if entered {
            self.note_holder(qnode.as_ptr());
        }
        entered
    }
}

// SAFETY: only the head of the queue holds the lock, and it is head from when it found the queue
// empty or was granted the lock until it leaves.
unsafe impl RawLock for Mcs {
    type Node = McsNode;

    fn new() -> Self {
        Self::new()
    }

    unsafe fn lock(&self, node: &mut McsNode) {
        *node = McsNode::default();
        // SAFETY: the node is new by the line above, and stays until `unlock` (contract of
        // `RawLock::lock`); there is no deadline.
        unsafe { self.queue.enter_until(&raw mut node.0, || self.holder(), None) };
        self.note_holder(null_mut());
    }

    unsafe fn try_lock(&self, node: &mut McsNode) -> bool {
        *node = McsNode::default();
        let taken = self.queue.is_empty() && self.queue.try_enter(&raw mut node.0);
        if taken {
            self.note_holder(null_mut());
        }
        taken
    }

    unsafe fn unlock(&self, node: &mut McsNode) {
        // SAFETY: the lock was acquired with this node (contract of `RawLock::unlock`), so that it
        // is at the head.
        unsafe { self.queue.hand_over(&raw mut node.0, GRANTED) };
    }
}

// SAFETY: acquisitions use the same queue as those of `RawLock`, whose head holds the lock. Sixteen
// bytes, and zero is an empty queue.
unsafe impl PlainLock for Mcs {
    const INFO: LockInfo = LockInfo {
        name: "mcs",
        summary: "queue in which each waits at a line of its own; spins, then sleeps in its place",
        source: "Mellor-Crummey and Scott, TOCS 1991",
        order: Order::Fifo,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        let enter = |qnode: NonNull<Pinned>| {
            let taken = self.queue.try_enter(qnode.as_ptr());
            if taken {
                self.note_holder(qnode.as_ptr());
            }
            taken
        };
        // SAFETY: a node that was not put at the tail is visible to no other thread.
        self.queue.is_empty() && unsafe { node::lend(enter) }
    }

    #[cold]
    fn acquire_contended(&self) {
        self.enter_inline(None);
    }

    #[cold]
    fn acquire_until(&self, deadline: Deadline) -> bool {
        let mut pause_ns = 1_000;
        loop {
            let holder = self.holder();
            if self.try_acquire() {
                return true;
            }
            hint::sleep(pause_ns);
            // A thread joins only a queue that moves: behind a lock that is held for a long time,
            // abandoned nodes would accumulate. (If a single thread acquires the lock again and
            // again with the same node, it seems to hold the lock all the time.)
            if self.holder() != holder {
                return self.enter_inline(Some(deadline));
            }
            if deadline.has_passed() {
                return false;
            }
            pause_ns = (pause_ns * 2).min(1_000_000);
        }
    }

    #[inline]
    unsafe fn release(&self) {
        let qnode = self.holder();
        // SAFETY: the caller holds the lock by this trait (contract of `PlainLock::release`), so
        // that `enter_inline` or `try_acquire` has noted its node: it is not null, comes from
        // `sync::node`, and is at the head. When `hand_over` returns, no thread has a link to it.
        unsafe {
            self.queue.hand_over(qnode, GRANTED);
            node::give_back(NonNull::new_unchecked(qnode));
        }
    }
}

lock_api_form!(Mcs);

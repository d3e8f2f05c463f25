//! `clh`: a queue in which each thread waits at the line of the thread before it.
//!
//! # Idea
//!
//! The lock is a pointer to the last node of a queue. A thread that comes swaps its node in, and
//! waits at the node that it got out. That node belongs to the thread before it, which opens the
//! node when it releases. There are no links to follow. So a release never waits for a successor
//! that has joined the queue and has not linked itself yet, as it may in `mcs`. The thread that
//! waited at a node takes the node away once it is open.
//!
//! # Source
//!
//! T. S. Craig, "Building FIFO and priority-queuing spin locks from atomic swap", University of
//! Washington, 1993, and P. Magnusson, A. Landin and E. Hagersten, "Queue Locks on Cache Coherent
//! Multiprocessors", IPPS 1994. There a waiter spins for ever; here it sleeps in the queue after
//! some microseconds. There a free lock still has the last holder's node, by which it is acquired.
//! Here a release without a successor takes its node out of the queue, by a compare-and-swap, so
//! that all bytes of a free lock are zero and its memory can be freed.
//!
//! # Fork
//!
//! If the only thread of a fork's child holds the lock, the first thread that comes in the child
//! finds a ghost at the tail, and waits at the holder's node.
//!
//! # Memory order
//!
//! The swap of the tail publishes the node to the successor (Release) and sees the predecessor's
//! (Acquire). A holder opens its node (Release), at which its successor waits (Acquire). Where no
//! thread waits, the release empties the tail (Release), and the next swap finds it empty
//! (Acquire).
//!
//! # Cost
//!
//! Uncontended: two compare-and-swaps, and a node that is taken and returned. Contended: each
//! hand-off transfers the node's line once, with any number of CPUs, and once more to return the
//! node to the store of its thread.
//!
//! # When not to use it
//!
//! With more runnable threads than CPUs: no thread may overtake the next one in order. On a machine
//! whose caches are not coherent, a waiter would poll another thread's memory.

use core::ptr::{NonNull, null_mut};

use super::gate::{Gate, MESSAGE};
use super::link::{Link, Linked};
use super::plain::{PlainLock, without_node};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{const_new, node, order, process};
use crate::{LockInfo, Order};

/// The message to the successor: it has the lock.
const GRANTED: u32 = MESSAGE;

/// A thread's node in the queue: the thread opens the gate when it releases.
#[derive(Debug)]
#[repr(align(64))]
struct Node {
    gate: Gate,
    /// The [`process::generation`] in which it joined the queue.
    generation: u32,
}

impl Default for Node {
    #[inline]
    fn default() -> Self {
        Self { gate: Gate::new(), generation: process::generation() }
    }
}

/// The CLH lock.
#[derive(Debug)]
#[repr(C)]
pub struct Clh {
    tail: Link<Node>,
    /// The holder's node. Written by the holder.
    holder: AtomicPtr<Node>,
}

impl Default for Clh {
    fn default() -> Self {
        Self::new()
    }
}

impl Clh {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { tail: Link::new(), holder: AtomicPtr::new(null_mut()) }
        }
    }

    /// Joins the queue, and returns at its head.
    fn enter(&self, node: NonNull<Node>) {
        // AcqRel. Acquire: partner of the Release in `release`, and of the Release of this swap in
        // the predecessor, for the predecessor's node. Release: partner of the Acquire in the
        // successor's swap.
        let before = match self.tail.swap(node.as_ptr(), order!(AcqRel, "clh-swap")) {
            Linked::Nothing => return,
            Linked::Node(before) => before,
            // Relaxed: in this process only the forking thread, if any, has held the lock.
            Linked::Ghost => self.holder.load(Ordering::Relaxed),
        };
        if let Some(before) = NonNull::new(before) {
            // SAFETY: a node stays until its successor gives it back, and this thread is the only
            // successor: the tail had the node when it was swapped out. Once the gate is open, the
            // owner has no use for the node.
            unsafe {
                before.as_ref().gate.wait();
                node::give_back(before);
            }
        }
    }
}

// SAFETY: only the head of the queue holds the lock, from when it found the queue empty, or the
// node before it open, until it opens its own node or takes that out; sixteen bytes, and zero is an
// empty queue.
unsafe impl PlainLock for Clh {
    const INFO: LockInfo = LockInfo {
        name: "clh",
        summary: "queue in which each waits at the line of the one before it; spins, then sleeps in its place",
        source: "Craig, 1993; Magnusson, Landin and Hagersten, IPPS 1994",
        order: Order::Fifo,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        let enter = |node: NonNull<Node>| {
            // AcqRel: Acquire, partner of the Release in `release`; Release, partner of the
            // Acquire in the successor's swap.
            let taken = self.tail.fill(node.as_ptr(), order!(AcqRel, "clh-try"));
            if taken {
                self.holder.store(node.as_ptr(), Ordering::Relaxed); // Relaxed: read by this thread, and see `enter`
            }
            taken
        };
        // SAFETY: a node that was not put at the tail is visible to no other thread.
        self.tail.is_empty() && unsafe { node::lend(enter) }
    }

    #[cold]
    fn acquire_contended(&self) {
        let node = node::take();
        self.enter(node);
        self.holder.store(node.as_ptr(), Ordering::Relaxed); // Relaxed: as above
    }

    #[inline]
    unsafe fn release(&self) {
        let node = self.holder.load(Ordering::Relaxed); // Relaxed: written by the holder
        // SAFETY: the node that `holder` has is the caller's own, since it holds the lock (contract
        // of `PlainLock::release`); its successor gives it back only after the gate was opened,
        // below.
        let generation = unsafe { (*node).generation };
        let is_old = generation != process::generation();
        if !is_old {
            // Nothing to wait at for the child of a fork that happens now. Relaxed: as above.
            self.holder.store(null_mut(), Ordering::Relaxed);
        }
        // Release: partner of the Acquire in `enter` and `try_acquire`.
        let release = order!(Release, "clh-empty");
        let alone =
            self.tail.clear(node, generation, release) || is_old && self.tail.clear_ghost(release);
        // SAFETY: if this thread is alone, no other has the node; otherwise the successor frees it,
        // once it is open.
        unsafe {
            if alone {
                node::give_back(NonNull::new_unchecked(node));
            } else {
                Gate::open(&raw const (*node).gate, GRANTED);
            }
        }
    }
}

without_node!(Clh);

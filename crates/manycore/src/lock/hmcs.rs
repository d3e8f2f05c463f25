//! `hmcs`: a tree of `mcs` queues, with a queue for each NUMA node, and a queue of the nodes.
//!
//! # Idea
//!
//! The threads of a NUMA node queue as in `mcs`, and the head of such a queue adds the node's queue
//! node to the queue of the nodes. A release passes the lock on within the NUMA node, with a
//! message that counts such releases in a row. After 64 of them, or if no thread waits there, it
//! releases the lock to the next NUMA node, and tells the next thread of its own node that the node
//! has to queue again.
//!
//! # Source
//!
//! M. Chabbi, M. Fagan and J. Mellor-Crummey, "High Performance Locks for Multi-level NUMA
//! Systems", PPoPP 2015. There the tree has any depth; here it has the two levels that the
//! operating system reports. A waiter sleeps after some microseconds. The queues of the NUMA nodes
//! are those of [`Cohorts`].
//!
//! # Memory order
//!
//! As for `mcs`, at each level. The head of a NUMA node's queue initialises the queue node of that
//! NUMA node; it became the head with the lock, or by the message that it has to climb.
//!
//! # Cost
//!
//! Uncontended, two compare-and-swaps to acquire and two to release. Contended, 64 of 65 hand-offs
//! stay within a node.
//!
//! # When not to use it
//!
//! As for `mcs`; and on one NUMA node, where `mcs` does the same with half the work. A lock takes 2
//! KiB.

use super::cohort::{Cohorts, QUEUES};
use super::gate::MESSAGE;
use super::plain::{PlainLock, without_node};
use super::queue::{Queue, QueueNode};
use crate::sync::cell::UnsafeCell;
use crate::sync::{CachePadded, array_of, const_new};
use crate::{LockInfo, Order};

/// To the next node: the lock is yours.
const GRANTED: u32 = MESSAGE;

/// The HMCS lock, of two levels.
#[derive(Debug)]
pub struct Hmcs {
    cohorts: Cohorts,
    root: CachePadded<Queue>,
    /// The queue nodes of the NUMA nodes in the root, each for the thread that is at the head of
    /// the node's queue.
    qnodes: [CachePadded<UnsafeCell<QueueNode>>; QUEUES],
}

// SAFETY: only the thread at the head of queue `n` writes `qnodes[n]`, and there is one at a time;
// others reach it through the root's queue, by its atomics.
unsafe impl Sync for Hmcs {}

impl Default for Hmcs {
    fn default() -> Self {
        Self::new()
    }
}

impl Hmcs {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self {
                cohorts: Cohorts::new(),
                root: CachePadded(Queue::new()),
                qnodes: array_of!(CachePadded(UnsafeCell::new(QueueNode::new(0))); QUEUES),
            }
        }
    }

    /// A new queue node for a NUMA node. The caller is at the head of that node's queue.
    fn new_qnode(&self, queue: usize) -> *mut QueueNode {
        self.qnodes[queue].with_mut(|qnode| {
            // SAFETY: the caller is at the head of the node's queue, which only one thread is, and
            // the queue node is in the root's queue only from `enter` to `leave`, both by such a
            // head.
            unsafe { *qnode = QueueNode::default() };
            qnode
        })
    }

    fn qnode(&self, queue: usize) -> *mut QueueNode {
        self.qnodes[queue].with(<*const QueueNode>::cast_mut)
    }
}

// SAFETY: only the head of the root's queue holds the lock between the nodes; zero is empty queues.
unsafe impl PlainLock for Hmcs {
    const INFO: LockInfo = LockInfo {
        name: "hmcs",
        summary: "mcs in each node of memory, and mcs between them; spins, then sleeps in its place",
        source: "Chabbi, Fagan and Mellor-Crummey, PPoPP 2015",
        order: Order::Queued,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        self.cohorts
            .try_acquire(|queue| self.root.is_empty() && self.root.try_enter(self.new_qnode(queue)))
    }

    #[cold]
    fn acquire_contended(&self) {
        self.cohorts.acquire(|queue| {
            let holding = || self.cohorts.holding_queue();
            // SAFETY: `new_qnode` has initialised the queue node, and it stays in `self`. The next
            // thread of this node that climbs, and initialises it again, does so only after `leave`
            // has taken it out of the root's queue.
            unsafe {
                self.root.enter(self.new_qnode(queue), || {
                    holding().map_or(core::ptr::null_mut(), |holding| self.qnode(holding))
                });
            }
        });
    }

    #[inline]
    unsafe fn release(&self) {
        let descend = |queue| {
            // SAFETY: the lock is held for this node, so its queue node is at the head of the
            // root's queue; a thread behind it waits at its queue node until it gets a message.
            unsafe {
                if let Some(next) = self.root.leave(self.qnode(queue)) {
                    QueueNode::tell(next, GRANTED);
                }
            }
        };
        // SAFETY: the caller holds the lock (contract of `PlainLock::release`), as
        // `Cohorts::release` requires.
        unsafe { self.cohorts.release(descend) };
    }
}

without_node!(Hmcs);

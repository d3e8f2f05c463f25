//! Lock cohorting: a queue for each NUMA node, and a lock between the nodes.
//!
//! # Idea
//!
//! A transfer between two caches of one NUMA node costs a fraction of one between nodes. So the
//! threads of a node queue among themselves, and only the head of such a queue *climbs*: it
//! acquires the lock between the nodes. A thread that releases passes both locks to the next thread
//! in its own queue. If there is none, or when that has happened 64 times in a row, it *descends*:
//! it releases the lock between the nodes, and then tells the next thread in its queue, if any, to
//! climb.
//!
//! # Source
//!
//! D. Dice, V. J. Marathe and N. Shavit, "Lock Cohorting: A General Technique for Designing NUMA
//! Locks", PPoPP 2012. Its members here are [`CBoMcs`](super::CBoMcs) and [`Hmcs`](super::Hmcs),
//! which differ in the lock between the nodes.
//!
//! # Fork
//!
//! In the child of a fork, queues of the parent's threads count as empty, except for the holder's
//! queue node if the holder is the forking thread.
//!
//! # Memory order
//!
//! Within a queue, the message from one queue node to the next (Release, Acquire) carries the lock.
//! Between queues, the lock between the nodes carries it. Only the holder reads and writes the
//! notes about the holder.
//!
//! # Cost
//!
//! Uncontended, the cost of two locks. Contended, 64 of 65 hand-offs stay within a node.
//!
//! # When not to use it
//!
//! On one NUMA node; where there are many locks, because each is a kilobyte large; with more
//! runnable threads than CPUs, because no thread may overtake the thread at the head of a queue.

use core::ptr::{NonNull, null_mut};

use super::gate::MESSAGE;
use super::queue::{Queue, QueueNode};
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::sync::{CachePadded, array_of, const_new, cpu, node};

/// The queues of a lock. On a machine with more NUMA nodes, some nodes share a queue.
pub(super) const QUEUES: usize = if cfg!(loom) { 2 } else { 8 };

/// How often in a row the lock is passed on within a NUMA node.
const PASSES: u32 = if cfg!(loom) { 1 } else { 64 };

/// To the next in a queue: climb.
const CLIMB: u32 = MESSAGE;
/// The message to the next in a queue that it has the lock. The number of passes in a row is added
/// to it.
const PASSED: u32 = MESSAGE + 1;

/// The queues of the NUMA nodes, and the thread that holds the lock.
#[derive(Debug)]
pub(super) struct Cohorts {
    queues: [CachePadded<Queue>; QUEUES],
    /// The holder's queue node, or null. The holder writes this field and the next two.
    holder: AtomicPtr<QueueNode>,
    /// Which queue it is in.
    queue: AtomicU32,
    /// How often the lock has been passed on in a row.
    passes: AtomicU32,
}

impl Cohorts {
    const_new! {
        pub(super) fn new() -> Self {
            Self {
                queues: array_of!(CachePadded(Queue::new()); QUEUES),
                holder: AtomicPtr::new(null_mut()),
                queue: AtomicU32::new(0),
                passes: AtomicU32::new(0),
            }
        }
    }

    /// Acquires the lock; `climb` is called with the number of a queue at whose head the caller is.
    pub(super) fn acquire(&self, climb: impl FnOnce(usize)) {
        let number = cpu::node() as usize % QUEUES;
        let qnode: NonNull<QueueNode> = node::take();
        // SAFETY: the queue node comes from `node::take`, so no other thread knows it; it is
        // returned only in `release`, after it has left the queue.
        let message = unsafe {
            self.queues[number].enter(qnode.as_ptr(), || match self.holding_queue() {
                Some(holding) if holding == number => self.holder(),
                _ => null_mut(),
            })
        };
        let passes = match message {
            None | Some(CLIMB) => {
                climb(number);
                0
            }
            Some(passed) => passed - PASSED,
        };
        self.note(qnode, number, passes);
    }

    /// Acquires the lock if that needs no wait; returns whether it did. `climb` does the same for
    /// the lock between the nodes.
    pub(super) fn try_acquire(&self, climb: impl FnOnce(usize) -> bool) -> bool {
        let number = cpu::node() as usize % QUEUES;
        let enter = |qnode: NonNull<QueueNode>| {
            let queue = &self.queues[number];
            if !(queue.is_empty() && queue.try_enter(qnode.as_ptr())) {
                return false;
            }
            let climbed = climb(number);
            if climbed {
                self.note(qnode, number, 0);
            } else {
                // SAFETY: `try_enter` has put the queue node at the head, where it is until it
                // leaves.
                unsafe { self.leave(qnode.as_ptr(), number) };
            }
            climbed
        };
        // SAFETY: if the result is false, the queue node was never in the queue, or `leave` has
        // taken it out.
        unsafe { node::lend(enter) }
    }

    /// Releases the lock; `descend` is called with the number of the queue for which the caller
    /// climbed, if it is to release the lock between the nodes.
    ///
    /// # Safety
    ///
    /// The caller holds the lock.
    pub(super) unsafe fn release(&self, descend: impl FnOnce(usize)) {
        // Relaxed, here and below: written by the holder.
        let (qnode, number) = (self.holder(), self.queue.load(Ordering::Relaxed) as usize);
        let passes = self.passes.load(Ordering::Relaxed);
        // SAFETY: the caller holds the lock (contract of this function), so `holder` has its queue
        // node, which is at the head of its queue. After the next thread has its message, or the
        // queue node has left, no thread follows a link to it.
        unsafe {
            if (*qnode).is_of_this_process() {
                // A thread that finds a ghost, in the child of a fork that happens now, is alone.
                // Relaxed: as above.
                self.holder.store(null_mut(), Ordering::Relaxed);
            }
            match (*qnode).next() {
                Some(next) if passes < PASSES => _ = QueueNode::tell(next, PASSED + passes + 1),
                _ => {
                    descend(number);
                    self.leave(qnode, number);
                }
            }
            node::give_back(NonNull::new_unchecked(qnode));
        }
    }

    /// The queue of the thread that holds the lock, if a thread does. To be called by the thread
    /// that finds a ghost.
    pub(super) fn holding_queue(&self) -> Option<usize> {
        // Relaxed, here and in `holder`: in this process only the forking thread has held the lock.
        (!self.holder().is_null()).then(|| self.queue.load(Ordering::Relaxed) as usize)
    }

    fn holder(&self) -> *mut QueueNode {
        self.holder.load(Ordering::Relaxed) // Relaxed: as above
    }

    fn note(&self, qnode: NonNull<QueueNode>, number: usize, passes: u32) {
        // Relaxed, all: read by this thread, and see `holding_queue`.
        self.queue.store(number as u32, Ordering::Relaxed);
        self.passes.store(passes, Ordering::Relaxed);
        self.holder.store(qnode.as_ptr(), Ordering::Relaxed);
    }

    /// Leaves a queue without the lock.
    ///
    /// # Safety
    ///
    /// The queue node is at the head of the queue.
    unsafe fn leave(&self, qnode: *mut QueueNode, number: usize) {
        // SAFETY: the queue node is at the head (contract of this function), and a thread behind it
        // waits at its queue node until it has a message.
        unsafe {
            if let Some(next) = self.queues[number].leave(qnode) {
                QueueNode::tell(next, CLIMB);
            }
        }
    }
}

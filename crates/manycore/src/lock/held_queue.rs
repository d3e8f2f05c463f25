//! A queue whose head holds a lock: the common part of locks that choose the next owner.

use core::ptr::{NonNull, null_mut};

use super::queue::{Queue, QueueNode};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{const_new, node};

/// The queue, and the thread at its head. If all bytes are zero, the lock is free.
#[derive(Debug)]
#[repr(C)]
pub(super) struct HeldQueue<N> {
    queue: Queue<N>,
    /// The holder's node. Written by the holder.
    holder: AtomicPtr<QueueNode<N>>,
}

impl<N: Default> HeldQueue<N> {
    const_new! {
        pub(super) fn new() -> Self {
            Self { queue: Queue::new(), holder: AtomicPtr::new(null_mut()) }
        }
    }

    /// Acquires the lock if the queue is empty; returns whether it did.
    #[inline]
    pub(super) fn try_acquire(&self) -> bool {
        let enter = |qnode: NonNull<QueueNode<N>>| {
            let entered = self.queue.try_enter(qnode.as_ptr());
            if entered {
                self.note(qnode);
            }
            entered
        };
        // SAFETY: a node that did not enter the queue is visible to no other thread.
        self.queue.is_empty() && unsafe { node::lend(enter) }
    }

    /// Acquires the lock, at a node with these notes.
    pub(super) fn acquire(&self, notes: N) {
        let mut qnode: NonNull<QueueNode<N>> = node::take();
        // SAFETY: the node comes from `node::take`, so no other thread knows it; it is returned
        // only in `release`, after it has left the queue.
        unsafe {
            qnode.as_mut().notes = notes;
            self.queue.enter(qnode.as_ptr(), || self.holder());
        }
        self.note(qnode);
    }

    /// Releases the lock: `pass_on` removes the holder's node from the queue, and tells the next
    /// thread if there is one.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, and its node is no longer in the queue when `pass_on` returns.
    #[inline]
    pub(super) unsafe fn release(&self, pass_on: impl FnOnce(&Queue<N>, *mut QueueNode<N>)) {
        let qnode = self.holder();
        // SAFETY: the caller holds the lock, so that `holder` has its node, at the head; when
        // `pass_on` returns the node has left (contract of this function), and no thread follows a
        // link to it.
        unsafe {
            if (*qnode).is_of_this_process() {
                // A thread that finds a ghost, in the child of a fork that happens now, is alone.
                // Relaxed: as in `note`.
                self.holder.store(null_mut(), Ordering::Relaxed);
            }
            pass_on(&self.queue, qnode);
            node::give_back(NonNull::new_unchecked(qnode));
        }
    }

    fn note(&self, qnode: NonNull<QueueNode<N>>) {
        // Relaxed, here and in `holder`: read by this thread, and by one that finds a ghost at the
        // end of the queue; in that process only the forking thread has held the lock.
        self.holder.store(qnode.as_ptr(), Ordering::Relaxed);
    }

    fn holder(&self) -> *mut QueueNode<N> {
        self.holder.load(Ordering::Relaxed) // Relaxed: as in `note`
    }
}

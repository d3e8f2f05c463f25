//! A queue whose head holds a lock: the common part of locks that choose the next owner.

use core::ptr::{NonNull, null_mut};

use super::queue::{Place, Queue};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{const_new, node};

/// The queue, and the thread at its head. All zero is a free lock.
#[derive(Debug)]
#[repr(C)]
pub(super) struct HeldQueue<N> {
    queue: Queue<N>,
    /// The holder's place. Written by the holder.
    holder: AtomicPtr<Place<N>>,
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
        let enter = |place: NonNull<Place<N>>| {
            let entered = self.queue.try_enter(place.as_ptr());
            if entered {
                self.note(place);
            }
            entered
        };
        // SAFETY: a place that did not enter the queue is visible to no other thread.
        self.queue.is_empty() && unsafe { node::lend(enter) }
    }

    /// Acquires the lock, at a place with these notes.
    pub(super) fn acquire(&self, notes: N) {
        let mut place: NonNull<Place<N>> = node::take();
        // SAFETY: the place comes from `node::take`, so no other thread knows it; it is returned
        // only in `release`, after it has left the queue.
        unsafe {
            place.as_mut().notes = notes;
            self.queue.enter(place.as_ptr(), || self.holder());
        }
        self.note(place);
    }

    /// Releases the lock: `pass_on` has the holder's place leave the queue, and tells another if
    /// there is one.
    ///
    /// # Safety
    ///
    /// The caller holds the lock, and its place has left when `pass_on` returns.
    #[inline]
    pub(super) unsafe fn release(&self, pass_on: impl FnOnce(&Queue<N>, *mut Place<N>)) {
        let place = self.holder();
        // SAFETY: the caller holds the lock, so that `holder` has its place, at the head; when
        // `pass_on` returns the place has left (contract of this function), and no thread follows a
        // link to it.
        unsafe {
            if (*place).is_of_this_process() {
                // A thread that finds a ghost, in the child of a fork that happens now, is alone.
                // Relaxed: as in `note`.
                self.holder.store(null_mut(), Ordering::Relaxed);
            }
            pass_on(&self.queue, place);
            node::give_back(NonNull::new_unchecked(place));
        }
    }

    fn note(&self, place: NonNull<Place<N>>) {
        // Relaxed, here and in `holder`: read by this thread, and by one that finds a ghost at the
        // end of the queue; in that process only the forking thread has held the lock.
        self.holder.store(place.as_ptr(), Ordering::Relaxed);
    }

    fn holder(&self) -> *mut Place<N> {
        self.holder.load(Ordering::Relaxed) // Relaxed: as in `note`
    }
}

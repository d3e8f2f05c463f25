//! `take-all`: many threads add items. A thread that takes gets all of them, in the order in which
//! they were added.
//!
//! # Idea
//!
//! ```text
//!  head -> newest -> ... -> oldest          push: a new node before the head, by compare-and-swap
//!                                           take: the head becomes null; reverse the chain
//! ```
//!
//! No thread takes a single node, so no node returns to the head while another thread reads it. So
//! the two difficulties of a stack's `pop`, the ABA problem and freeing nodes, do not arise.
//!
//! # Source
//!
//! R. K. Treiber, "Systems Programming: Coping with Parallelism", IBM 1986, for the push; taking
//! everything in one step is folklore, and LDU's queues do it.
//!
//! # Memory order
//!
//! A push releases its node, and a take acquires the nodes that it swaps out. Pushes are
//! read-modify-writes of the head, so one take synchronises with all pushes whose nodes it gets,
//! whichever thread made the last. A node is not shared before its push, and belongs to one thread
//! after its take.
//!
//! # Cost
//!
//! A push takes an allocation and a compare-and-swap, on one line for all threads; a take is one
//! swap, whatever it gets. The queue is lock-free; a take is wait-free.
//!
//! # When not to use it
//!
//! Where a thread takes one item at a time, or threads push so often that they fail at the head
//! again and again.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr::null_mut;

use crate::exhaust::exhaust;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::order;

/// A queue from which a thread takes all items at once.
///
/// ```
/// use manycore::collections::queue::TakeAll;
///
/// let queue = TakeAll::new();
/// std::thread::scope(|s| {
///     s.spawn(|| (0..3).for_each(|n| queue.push(n)));
/// });
/// assert_eq!(queue.take().collect::<Vec<_>>(), [0, 1, 2]);
/// assert_eq!(queue.take().next(), None);
/// ```
///
/// Invariant: the head leads through nodes that came from `Box` and belong to this queue, newest
/// first, to null.
#[derive(Debug)]
pub struct TakeAll<T> {
    head: AtomicPtr<Node<T>>,
    _nodes: PhantomData<Box<Node<T>>>,
}

#[derive(Debug)]
struct Node<T> {
    value: T,
    next: UnsafeCell<*mut Node<T>>,
}

// SAFETY: the queue owns the values, which its end drops in any thread.
unsafe impl<T: Send> Send for TakeAll<T> {}
// SAFETY: a value passes from the thread that adds it to the one that takes it; two threads never
// refer to it at once.
unsafe impl<T: Send> Sync for TakeAll<T> {}

impl<T> TakeAll<T> {
    /// Creates one without values.
    #[must_use]
    pub fn new() -> Self {
        Self { head: AtomicPtr::new(null_mut()), _nodes: PhantomData }
    }

    /// Puts a value in.
    pub fn push(&self, value: T) {
        // Relaxed, here and on failure: the compare-and-swap decides.
        let mut head = self.head.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node { value, next: UnsafeCell::new(head) }));
        loop {
            // Release: partner of the Acquire in `take`.
            let release = order!(Release, "take-all-push");
            // Relaxed: as above.
            match self.head.compare_exchange(head, node, release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => head = changed,
            }
            // SAFETY: no other thread knows the node: the compare-and-swap has not put it into the
            // queue.
            unsafe { (*node).next.with_mut(|next| *next = head) };
        }
    }

    /// Takes everything out, oldest first.
    pub fn take(&self) -> Taken<T> {
        // Acquire: partner of the Release in `push`.
        let mut newest = self.head.swap(null_mut(), order!(Acquire, "take-all-take"));
        let mut oldest = null_mut();
        while !newest.is_null() {
            // SAFETY: the swap has taken the whole chain, whose nodes are from boxes of `push`; no
            // other thread has them.
            let next =
                unsafe { (*newest).next.with_mut(|next| core::mem::replace(&mut *next, oldest)) };
            oldest = newest;
            newest = next;
        }
        Taken { node: oldest, _nodes: PhantomData }
    }
}

impl<T> Default for TakeAll<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for TakeAll<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// What was taken out of a [`TakeAll`], oldest first.
///
/// Invariant: the links lead through nodes that came from `Box` and belong to this value, to null.
#[derive(Debug)]
pub struct Taken<T> {
    node: *mut Node<T>,
    _nodes: PhantomData<Box<Node<T>>>,
}

// SAFETY: it owns its nodes, and with them the values, which are `Send`.
unsafe impl<T: Send> Send for Taken<T> {}

impl<T> Iterator for Taken<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.node.is_null() {
            return None;
        }
        // SAFETY: `push` has made the node by a box, and the chain from here on is this one's
        // (invariant of `Taken`).
        let Node { value, next } = *unsafe { Box::from_raw(self.node) };
        self.node = next.into_inner();
        Some(value)
    }
}

impl<T> Drop for Taken<T> {
    fn drop(&mut self) {
        exhaust(|| self.next().is_some());
    }
}

//! A queue in which each thread waits at a node of its own until the thread before it leaves a
//! message there.
//!
//! The lock `mcs` is this queue alone. Locks that consist of several queues, or that choose the
//! next owner, are built from it. Each lock defines the role of the queue's head.

use core::ptr::{NonNull, null_mut};

use super::gate::Gate;
use super::link::{Link, Linked};
use crate::sync::atomic::Ordering;
use crate::sync::{Deadline, const_new, hint, mutation, node, order, process};

/// A node in a queue, with a lock's additional data about a waiter or a hand-over.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct QueueNode<N = ()> {
    next: Link<QueueNode<N>>,
    gate: Gate,
    /// The [`process::generation`] in which it joined the queue.
    generation: u32,
    pub(super) notes: N,
}

impl<N: Default> Default for QueueNode<N> {
    #[inline]
    fn default() -> Self {
        let generation = process::generation();
        Self { next: Link::new(), gate: Gate::new(), generation, notes: N::default() }
    }
}

impl QueueNode {
    const_new! {
        pub(super) fn new(generation: u32) -> Self {
            Self { next: Link::new(), gate: Gate::new(), generation, notes: () }
        }
    }
}

impl<N> QueueNode<N> {
    /// Whether it joined the queue in this process.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.generation == process::generation()
    }

    /// The next node in the queue, if that has linked itself.
    #[inline]
    pub(super) fn next(&self) -> Option<*mut Self> {
        // Acquire: partner of the Release in `enter`.
        match self.next.load(order!(Acquire, "queue-next")) {
            Linked::Node(next) => Some(next),
            Linked::Nothing | Linked::Ghost => None,
        }
    }

    /// Links another node behind this one, or none. To be called by the thread that holds the lock:
    /// other threads write this link only at the end of the queue.
    pub(super) fn set_next(&self, next: *mut Self) {
        // Relaxed: the thread that reads it later holds the lock; or it comes to the end of the
        // queue, and is ordered by the queue's tail.
        self.next.store(next, Ordering::Relaxed);
    }

    /// Leaves a message for the thread that waits at this node; returns whether it waits. After
    /// that the node may be freed at any time. A thread that has [given up](Queue::enter_until)
    /// does not wait.
    ///
    /// # Safety
    ///
    /// The node has joined a queue, is not at its head, and has no message.
    pub(super) unsafe fn tell(qnode: *mut Self, message: u32) -> bool {
        // SAFETY: a thread in the queue keeps its node until its gate has a message, and it has
        // none (contract of this function): no other thread sends one.
        unsafe { Gate::open(&raw const (*qnode).gate, message) }
    }
}

/// The queue: a pointer to the last node. If all bytes are zero, the queue is empty.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Queue<N = ()> {
    tail: Link<QueueNode<N>>,
}

impl<N> Queue<N> {
    const_new! {
        pub(super) fn new() -> Self {
            Self { tail: Link::new() }
        }
    }

    /// Whether the queue is empty, as a hint.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.tail.is_empty()
    }

    /// Joins the queue if it is still empty, as [`is_empty`](Self::is_empty) found; returns whether
    /// it did.
    #[inline]
    pub(super) fn try_enter(&self, qnode: *mut QueueNode<N>) -> bool {
        // AcqRel: Acquire, partner of the Release in `leave_to`; Release, partner of the Acquire
        // in the successor's swap.
        self.tail.fill(qnode, order!(AcqRel, "queue-try"))
    }

    /// Joins the queue, and returns when the node is at its head: with the message of the node
    /// before it, or none if the queue was empty.
    ///
    /// In the child of a fork, the nodes of the parent's other threads do not count: `holder` is
    /// then the node at the head that belongs to the thread which has forked, or null.
    ///
    /// # Safety
    ///
    /// The node is new, and stays until `leave`.
    pub(super) unsafe fn enter(
        &self,
        qnode: *mut QueueNode<N>,
        holder: impl FnOnce() -> *mut QueueNode<N>,
    ) -> Option<u32> {
        // SAFETY: the node is new, and stays (contract of this function).
        unsafe { self.join(qnode, holder).then(|| (*qnode).gate.wait()) }
    }

    /// Does the same as [`enter`](Self::enter), but gives up when the deadline has passed; returns
    /// whether the node is at the head. If not, the node belongs to a thread that would
    /// [hand](Self::hand_over) the head to it.
    ///
    /// # Safety
    ///
    /// As for [`enter`](Self::enter). With a deadline the node comes from `sync::node`, every
    /// thread leaves this queue by [`hand_over`](Self::hand_over), and if the result is false the
    /// node does not belong to the caller any more.
    pub(super) unsafe fn enter_until(
        &self,
        qnode: *mut QueueNode<N>,
        holder: impl FnOnce() -> *mut QueueNode<N>,
        deadline: Option<Deadline>,
    ) -> bool {
        // SAFETY: the node is new, and stays (contract of this function), until its gate is
        // abandoned, after which this function does not touch it.
        unsafe { !self.join(qnode, holder) || (*qnode).gate.wait_until(deadline).is_some() }
    }

    /// Adds the node to the end of the queue; returns whether there is another before it.
    ///
    /// # Safety
    ///
    /// As of [`enter`](Self::enter).
    unsafe fn join(
        &self,
        qnode: *mut QueueNode<N>,
        holder: impl FnOnce() -> *mut QueueNode<N>,
    ) -> bool {
        // AcqRel. Acquire: partner of the Release in `leave_to`, and of the Release of this swap in
        // the predecessor, for the predecessor's node. Release: partner of the Acquire in the
        // successor's swap.
        let before = match self.tail.swap(qnode, order!(AcqRel, "queue-swap")) {
            Linked::Nothing => null_mut(),
            Linked::Node(before) => before,
            Linked::Ghost => holder(),
        };
        // SAFETY: a node at the tail cannot leave before it has seen a successor, and only the
        // store below shows it one; `holder` is the node of the one thread that the child of a fork
        // has.
        unsafe {
            // Release: partner of the Acquire in `QueueNode::next`.
            let before = before.as_ref();
            before.map(|before| before.next.store(qnode, order!(Release, "queue-link"))).is_some()
        }
    }

    /// Leaves the head. Returns the next node in the queue, to which the caller has to
    /// [`tell`](QueueNode::tell) it; none if the queue is empty now.
    ///
    /// # Safety
    ///
    /// The node is at the head.
    #[inline]
    pub(super) unsafe fn leave(&self, qnode: *mut QueueNode<N>) -> Option<*mut QueueNode<N>> {
        // SAFETY: the node is at the head (contract of this function), and null as the last means
        // that no node is behind it.
        unsafe { self.leave_to(qnode, null_mut()) }
    }

    /// Leaves the head to the next node in the queue whose thread has not given up, with a message,
    /// or leaves the queue empty. The nodes of threads that have given up are returned to the
    /// store.
    ///
    /// # Safety
    ///
    /// The node is at the head.
    #[inline]
    pub(super) unsafe fn hand_over(&self, qnode: *mut QueueNode<N>, message: u32) {
        // SAFETY: the node is at the head (contract of this function).
        if let Some(next) = unsafe { self.leave(qnode) } {
            // SAFETY: it is behind the node that has left the head, and has no message.
            unsafe { self.tell_first(next, message) };
        }
    }

    /// # Safety
    ///
    /// The node is the first, and has no message.
    #[cold]
    unsafe fn tell_first(&self, mut qnode: *mut QueueNode<N>, message: u32) {
        // SAFETY: the node is the first, and has no message: by the contract of this function, or
        // as the next of one that was.
        while !unsafe { QueueNode::tell(qnode, message) } {
            // SAFETY: its thread has given up, so that this one is at the head with it.
            let next = unsafe { self.leave(qnode) };
            // SAFETY: such nodes come from `sync::node` (contract of `enter_until`); it has left
            // the queue, so that no thread has a link to it.
            unsafe { node::give_back(NonNull::new_unchecked(qnode)) };
            let Some(next) = next else { return };
            qnode = next;
        }
    }

    /// Does the same as [`leave`](Self::leave). But if there is no next node, this node, which is
    /// in no queue, becomes the last; null stands for none. The caller then has to tell it.
    ///
    /// # Safety
    ///
    /// The node is at the head, and has become the last.
    #[inline]
    pub(super) unsafe fn leave_to(
        &self,
        qnode: *mut QueueNode<N>,
        last: *mut QueueNode<N>,
    ) -> Option<*mut QueueNode<N>> {
        // SAFETY: a node at the head is the caller's, and stays until it has left (contract of this
        // function).
        let this = unsafe { &*qnode };
        loop {
            if let Some(next) = this.next() {
                return Some(next);
            }
            // Release: partner of the Acquire in `enter` and `try_enter`.
            let release = order!(Release, "queue-empty");
            if self.tail.pass(qnode, this.generation, last, release)
                || !this.is_of_this_process() && self.tail.clear_ghost(release)
            {
                return None;
            }
            if mutation!("queue-hand-off") {
                return None; // and a thread that is about to link itself waits for ever
            }
            hint::spin_loop(); // the next is about to link itself
        }
    }
}

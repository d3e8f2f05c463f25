//! `mcs`: a queue of waiters, each of which watches a line of its own.
//!
//! # Idea
//!
//! The lock is a pointer to the last node of a queue. Whoever comes swaps its node in and links it behind the one that
//! it got out; then it waits at its own node, where nobody disturbs it, until its predecessor hands the lock over. So
//! a hand-off is one line transfer however many wait, and service is strictly in order of arrival.
//!
//! # Source
//!
//! J. M. Mellor-Crummey and M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors",
//! ACM TOCS 9(1), 1991. There a waiter spins for ever. Here it sleeps after [`SPIN`] ticks, so that programs with more
//! threads than CPUs do get on; it keeps its place.
//!
//! In place of another lock, which has no node to lend, the holder's node comes from [`sync::node`](crate::sync::node)
//! and is remembered beside the tail.
//!
//! # Memory order
//!
//! The swap of the tail publishes the node to the successor (Release) and sees the predecessor's (Acquire); the
//! successor's link (Release) shows its node to the holder (Acquire). The hand-over is a swap of the waiter's state
//! (Release) that the waiter reads (Acquire); where nobody waits, the release empties the tail (Release) and the next
//! swap finds it empty (Acquire). A sleeper says that it sleeps by a compare-and-swap of the word that the hand-over
//! swaps, so that one of the two sees the other.
//!
//! # Cost
//!
//! Uncontended, a swap and a compare-and-swap, in place of another lock also taking and returning a node. Contended, a
//! line transfer or two a hand-off with any number of CPUs.
//!
//! # When not to use it
//!
//! With more runnable threads than CPUs: the thread whose turn it is may not run, and nobody may overtake it, so that
//! each hand-off takes a wake-up. `mcs-bypass` overtakes.

use core::ptr::{NonNull, null_mut};

use super::inline::{InlineLock, lock_api_form};
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{clock, const_new, futex, hint, node, order, process};
use crate::{LockInfo, Order, RawLock};

/// How long a waiter spins before it sleeps, in ticks: about twenty microseconds.
pub const SPIN: u64 = if cfg!(loom) { 1 } else { 50_000 };

const GRANTED: u32 = 0;
const SPINNING: u32 = 1;
const SLEEPING: u32 = 2;

/// A waiter's or the holder's place in the queue.
#[derive(Debug)]
#[repr(align(64))]
pub struct McsNode {
    next: AtomicPtr<McsNode>,
    state: AtomicU32,
    /// The [`process::generation`] in which it joined the queue.
    generation: u32,
}

impl Default for McsNode {
    fn default() -> Self {
        Self {
            next: AtomicPtr::new(null_mut()),
            state: AtomicU32::new(SPINNING),
            generation: process::generation(),
        }
    }
}

/// The MCS lock.
#[derive(Debug)]
#[repr(C)]
pub struct Mcs {
    tail: AtomicPtr<McsNode>,
    /// The holder's node, in the inline form only. Protected by the lock.
    holder: UnsafeCell<*mut McsNode>,
}

// SAFETY: the node pointers are only followed as the algorithm says.
unsafe impl Send for Mcs {}
// SAFETY: as above; `holder` is protected by the lock.
unsafe impl Sync for Mcs {}

impl Default for Mcs {
    fn default() -> Self {
        Self::new()
    }
}

impl Mcs {
    const_new! {
        /// A lock that nobody holds.
        pub fn new() -> Self {
            Self { tail: AtomicPtr::new(null_mut()), holder: UnsafeCell::new(null_mut()) }
        }
    }

    fn looks_free(&self) -> bool {
        // Relaxed: a hint; the exchange that follows decides and orders.
        self.tail.load(Ordering::Relaxed).is_null()
    }

    /// Takes the lock if the queue is empty.
    fn try_enter(&self, node: *mut McsNode) -> bool {
        // AcqRel: Acquire, partner of the Release in `leave`; Release, as in `enter`. Relaxed: nothing was acquired.
        let order = order!(AcqRel, "mcs-try");
        self.tail.compare_exchange(null_mut(), node, order, Ordering::Relaxed).is_ok()
    }

    /// Joins the queue, and returns at its head.
    ///
    /// # Safety
    ///
    /// The node is new, and stays until `leave`.
    unsafe fn enter(&self, node: *mut McsNode) {
        // AcqRel: Acquire, partner of the Release in `leave` and in the predecessor's swap; Release, partner of the
        // Acquire in the successor's swap: the nodes are initialised.
        let before = self.tail.swap(node, order!(AcqRel, "mcs-swap"));
        if before.is_null() {
            return;
        }
        // SAFETY: the predecessor cannot leave before it has seen its successor; the node is the caller's.
        unsafe {
            // Release: partner of the Acquire in `successor`.
            (*before).next.store(node, order!(Release, "mcs-link"));
            (*node).wait();
        }
    }

    /// Hands the lock to the next in the queue, or leaves it free.
    ///
    /// # Safety
    ///
    /// The node is at the head.
    unsafe fn leave(&self, node: *mut McsNode) {
        // SAFETY: the holder's own node.
        let this = unsafe { &*node };
        if this.generation != process::generation() {
            // The child of a fork has no thread of those that wait in this queue.
            // Release: partner of the Acquires of the tail.
            self.tail.store(null_mut(), Ordering::Release);
            return;
        }
        let Some(next) = this.successor(&self.tail) else { return };
        // SAFETY: the successor waits in its node until the swap has taken effect.
        let state = unsafe { &raw const (*next).state };
        // Release: partner of the Acquires in `wait`.
        // SAFETY: as above.
        if unsafe { (*state).swap(GRANTED, order!(Release, "mcs-grant")) } == SLEEPING {
            futex::wake(state, 1);
        }
    }
}

impl McsNode {
    /// Waits until the predecessor has handed over.
    fn wait(&self) {
        let start = clock::now();
        // Acquire: partner of the Release in `leave`.
        while self.state.load(order!(Acquire, "mcs-spin")) != GRANTED {
            if clock::now().wrapping_sub(start) > SPIN {
                return self.sleep();
            }
            hint::spin_loop();
        }
    }

    #[cold]
    fn sleep(&self) {
        // Acquire on failure: granted meanwhile, as in `wait`. Relaxed on success: says only that this thread sleeps.
        let granted = order!(Acquire, "mcs-sleep");
        if self.state.compare_exchange(SPINNING, SLEEPING, Ordering::Relaxed, granted).is_err() {
            return;
        }
        // Acquire: as in `wait`.
        while self.state.load(order!(Acquire, "mcs-woken")) != GRANTED {
            futex::wait(&self.state, SLEEPING, None);
        }
    }

    /// The next in the queue, waiting for its link if it is on its way; none if the queue is empty now.
    fn successor(&self, tail: &AtomicPtr<McsNode>) -> Option<*mut McsNode> {
        // Acquire, here and below: partner of the Release in `enter`.
        let mut next = self.next.load(order!(Acquire, "mcs-next"));
        if next.is_null() {
            // Release: partner of the Acquire in `enter` and `try_enter`. Relaxed: nothing was released.
            let (release, failed) = (order!(Release, "mcs-empty"), Ordering::Relaxed);
            let this = core::ptr::from_ref(self).cast_mut();
            if tail.compare_exchange(this, null_mut(), release, failed).is_ok() {
                return None;
            }
            while next.is_null() {
                hint::spin_loop();
                next = self.next.load(order!(Acquire, "mcs-next"));
            }
        }
        Some(next)
    }
}

// SAFETY: only the head of the queue holds the lock, and it is head from when it found the queue empty or was granted
// the lock until it leaves.
unsafe impl RawLock for Mcs {
    type Node = McsNode;

    fn new() -> Self {
        Self::new()
    }

    unsafe fn lock(&self, node: &mut McsNode) {
        *node = McsNode::default();
        // SAFETY: the caller keeps the node.
        unsafe { self.enter(node) };
    }

    unsafe fn try_lock(&self, node: &mut McsNode) -> bool {
        *node = McsNode::default();
        self.looks_free() && self.try_enter(node)
    }

    unsafe fn unlock(&self, node: &mut McsNode) {
        // SAFETY: the caller holds the lock with this node.
        unsafe { self.leave(node) };
    }
}

// SAFETY: as above; sixteen bytes, and zero is an empty queue.
unsafe impl InlineLock for Mcs {
    const INFO: LockInfo = LockInfo {
        name: "mcs",
        summary: "queue in which each waits at a line of its own; spins, then sleeps in its place",
        source: "Mellor-Crummey and Scott, TOCS 1991",
        order: Order::Fifo,
        blocks: true,
    };

    fn try_acquire(&self) -> bool {
        if !self.looks_free() {
            return false;
        }
        let node: NonNull<McsNode> = node::take();
        if !self.try_enter(node.as_ptr()) {
            // SAFETY: nobody has seen it.
            unsafe { node::give_back(node) };
            return false;
        }
        // SAFETY: this thread holds the lock.
        self.holder.with_mut(|holder| unsafe { *holder = node.as_ptr() });
        true
    }

    fn acquire_contended(&self) {
        let node: NonNull<McsNode> = node::take();
        // SAFETY: the node is new and stays until `release`; then this thread holds the lock.
        unsafe {
            self.enter(node.as_ptr());
            self.holder.with_mut(|holder| *holder = node.as_ptr());
        }
    }

    unsafe fn release(&self) {
        // SAFETY: the caller holds the lock, so that the node is its own, at the head, until it has left.
        unsafe {
            let node = self.holder.with(|holder| NonNull::new_unchecked(*holder));
            self.leave(node.as_ptr());
            node::give_back(node);
        }
    }
}

lock_api_form!(Mcs);

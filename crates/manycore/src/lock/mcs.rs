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
//! ACM TOCS 9(1), 1991. There a waiter spins for ever. Here it spins for `tuning::spin_limit`, some microseconds, and
//! then sleeps in its place, so that programs with more threads than CPUs do get on. A waiter whose deadline passes
//! leaves its node behind, for whoever would hand it the lock to take away, as in B. He, W. N. Scherer and M. L. Scott,
//! "Preemption Adaptivity in Time-Published Queue-Based Spin Locks", HiPC 2005.
//!
//! In place of another lock, which has no node to lend, the node comes from [`sync::node`](crate::sync::node) and is
//! remembered beside the tail.
//!
//! # Fork
//!
//! The child of a fork has none of the threads that wait. If its one thread holds the lock, the first that comes in
//! the child finds a ghost at the tail and links itself behind the holder; and the holder, when it releases, knows
//! from its node that what it was linked to before is not there. (Not where callers lend their nodes: a lock that is
//! held over a fork in that way has to be free of waiters at the fork.)
//!
//! # Memory order
//!
//! The swap of the tail publishes the node to the successor (Release) and sees the predecessor's (Acquire); the
//! successor's link (Release) shows its node to the holder (Acquire). The hand-over is a swap of the waiter's state
//! (Release) that the waiter reads (Acquire); where nobody waits, the release empties the tail (Release) and the next
//! swap finds it empty (Acquire). A sleeper says that it sleeps by a compare-and-swap of the word that the hand-over
//! swaps, so that one of the two sees the other; one that leaves does likewise (Release), before the hand-over takes
//! its node away (Acquire).
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

use core::marker::PhantomPinned;
use core::ptr::{NonNull, null_mut};

use super::link::{Link, Linked};
use super::plain::{PlainLock, lock_api_form};
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::sync::{
    Deadline, Woken, clock, const_new, futex, hint, mortal, mutation, node, order, process, tuning,
};
use crate::{LockInfo, Order, RawLock};

const SPINNING: u32 = 0;
const SLEEPING: u32 = 1;
const GRANTED: u32 = 2;
/// The waiter has left, and its node is for whoever would hand it the lock.
const ABANDONED: u32 = 3;

/// A waiter's or the holder's place in the queue.
#[derive(Debug)]
#[repr(align(64))]
pub struct McsNode {
    next: Link<McsNode>,
    state: AtomicU32,
    /// The [`process::generation`] in which it joined the queue.
    generation: u32,
    /// Other threads write to it while its owner still has a `&mut` to it, which is allowed only
    /// where nothing says that it may be moved.
    _pinned: PhantomPinned,
}

impl Default for McsNode {
    #[inline]
    fn default() -> Self {
        let generation = process::generation();
        Self {
            next: Link::new(),
            state: AtomicU32::new(SPINNING),
            generation,
            _pinned: PhantomPinned,
        }
    }
}

/// The MCS lock.
#[derive(Debug)]
#[repr(C)]
pub struct Mcs {
    tail: Link<McsNode>,
    /// The holder's node if it comes from `sync::node`. Written by the holder.
    holder: AtomicPtr<McsNode>,
}

impl Default for Mcs {
    fn default() -> Self {
        Self::new()
    }
}

impl Mcs {
    const_new! {
        /// A lock that nobody holds.
        pub fn new() -> Self {
            Self { tail: Link::new(), holder: AtomicPtr::new(null_mut()) }
        }
    }

    /// Takes the lock if the queue is empty.
    #[inline]
    fn try_enter(&self, node: *mut McsNode) -> bool {
        // AcqRel: Acquire, partner of the Release in `leaves_empty`; Release, partner of the
        // Acquire in the successor's swap.
        self.tail.fill(node, order!(AcqRel, "mcs-try"))
    }

    /// Joins the queue, and returns at its head, or when the deadline has passed; says which.
    ///
    /// # Safety
    ///
    /// The node is new, and stays until `leave`. With a deadline it comes from `sync::node`, and if the result is
    /// false it is not the caller's any more.
    unsafe fn enter(&self, node: *mut McsNode, deadline: Option<Deadline>) -> bool {
        // AcqRel: Acquire, partner of the Release in `leaves_empty` and in the predecessor's swap;
        // Release, partner of the
        // Acquire in the successor's swap: the nodes are initialised.
        let predecessor = match self.tail.swap(node, order!(AcqRel, "mcs-swap")) {
            Linked::Nothing => return true,
            Linked::Node(before) => before,
            // Relaxed: nobody has held the lock in this process but the thread that forked it.
            Linked::Ghost => self.holder.load(Ordering::Relaxed),
        };
        // SAFETY: a node at the tail cannot leave before it has seen a successor, and only the
        // store below shows it one. The holder's node after a fork is that of the one thread which
        // the child has, and stays until its `release`.
        if let Some(predecessor) = unsafe { predecessor.as_ref() } {
            // Release: partner of the Acquire in `successor`.
            predecessor.next.store(node, order!(Release, "mcs-link"));
        }
        // SAFETY: the node stays until `leave` (contract of this function); if it is abandoned,
        // `wait` does not touch it again.
        unsafe { (*node).wait(deadline) }
    }

    /// Hands the lock to the next in the queue, or leaves it free.
    ///
    /// # Safety
    ///
    /// The node is at the head.
    #[inline]
    unsafe fn leave(&self, node: *mut McsNode) {
        // SAFETY: the node is at the head, and so is the caller's until it has left (contract of
        // this function).
        let this = unsafe { &*node };
        if !(this.next.is_empty() && this.leaves_empty(&self.tail)) {
            // SAFETY: `this` is at the head, and has not left.
            unsafe { self.hand_over(this) }
        }
    }

    /// # Safety
    ///
    /// The node is at the head.
    #[cold]
    unsafe fn hand_over(&self, node: &McsNode) {
        let Some(mut next) = node.successor(&self.tail) else { return };
        loop {
            // SAFETY: a waiter keeps its node until the swap below has granted it the lock; an
            // abandoned one is for this thread to give back.
            let state = unsafe { &raw const (*next).state };
            // AcqRel: Release, partner of the Acquires in `wait`; Acquire, partner of the Release in `abandon`.
            // SAFETY: likewise; after the swap only the address is used.
            let before = unsafe { (*state).swap(GRANTED, order!(AcqRel, "mcs-grant")) };
            if before == SLEEPING {
                futex::wake(state, 1);
            }
            if before != ABANDONED {
                return;
            }
            // SAFETY: its owner has abandoned it, so that this thread is at the head with it; such
            // nodes come from `sync::node` (contract of `enter`), and once the successor is known,
            // or there is none, no thread has a link to it.
            let after = unsafe {
                let after = (*next).successor(&self.tail);
                node::give_back(NonNull::new_unchecked(next));
                after
            };
            let Some(after) = after else { return };
            next = after;
        }
    }
}

impl McsNode {
    /// Waits until the predecessor has handed over, or the deadline has passed; says which.
    fn wait(&self, deadline: Option<Deadline>) -> bool {
        let (start, limit) = (clock::now(), tuning::spin_limit());
        // Acquire: partner of the AcqRel in `hand_over`.
        while self.state.load(order!(Acquire, "mcs-spin")) != GRANTED {
            if clock::has_passed(start, limit) {
                return self.sleep(deadline);
            }
            hint::spin_loop();
        }
        true
    }

    #[cold]
    fn sleep(&self, deadline: Option<Deadline>) -> bool {
        // Acquire on failure: partner of the AcqRel in `hand_over`: granted meanwhile. Relaxed on
        // success: says only that this thread sleeps.
        let granted = order!(Acquire, "mcs-sleep");
        if self.state.compare_exchange(SPINNING, SLEEPING, Ordering::Relaxed, granted).is_err() {
            return true;
        }
        // Acquire: partner of the AcqRel in `hand_over`.
        while self.state.load(order!(Acquire, "mcs-woken")) != GRANTED {
            if futex::wait(&self.state, SLEEPING, deadline) == Woken::TimedOut && self.abandon() {
                return false;
            }
        }
        true
    }

    /// Leaves the node to the predecessor, unless it has handed over.
    fn abandon(&self) -> bool {
        // Release: partner of the AcqRel in `hand_over`. Relaxed on failure: `sleep` looks again.
        let left = order!(Release, "mcs-abandon");
        self.state.compare_exchange(SLEEPING, ABANDONED, left, Ordering::Relaxed).is_ok()
    }

    /// Leaves the queue, at its head, if no other has joined it.
    #[inline]
    fn leaves_empty(&self, tail: &Link<McsNode>) -> bool {
        // Release: partner of the Acquire in `enter` and `try_enter`.
        let release = order!(Release, "mcs-empty");
        tail.clear(core::ptr::from_ref(self).cast_mut(), self.generation, release)
    }

    /// The next in the queue, waiting for its link if it is on its way; none if the queue is empty now.
    fn successor(&self, tail: &Link<McsNode>) -> Option<*mut McsNode> {
        loop {
            // Acquire: partner of the Release in `enter`.
            if let Linked::Node(next) = self.next.load(order!(Acquire, "mcs-next")) {
                return Some(next);
            }
            if self.leaves_empty(tail) {
                return None;
            }
            if mutation!("mcs-hand-off") {
                return None; // and whoever is about to link itself waits for ever
            }
            // Release: partner of the Acquire in `enter` and `try_enter`.
            if self.generation != process::generation() && tail.clear_ghost(Ordering::Release) {
                return None;
            }
            hint::spin_loop();
        }
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
        // SAFETY: the node is new by the line above, and stays until `unlock` (contract of
        // `RawLock::lock`); there is no deadline.
        unsafe { self.enter(node, None) };
        self.holder.store(null_mut(), Ordering::Relaxed); // Relaxed: see `enter`
    }

    unsafe fn try_lock(&self, node: &mut McsNode) -> bool {
        *node = McsNode::default();
        let taken = self.tail.is_empty() && self.try_enter(node);
        if taken {
            self.holder.store(null_mut(), Ordering::Relaxed); // Relaxed: see `enter`
        }
        taken
    }

    unsafe fn unlock(&self, node: &mut McsNode) {
        // SAFETY: the lock was acquired with this node (contract of `RawLock::unlock`), so that it
        // is at the head.
        unsafe { self.leave(node) };
    }
}

impl Mcs {
    /// As `enter`, with a node of the thread's own.
    #[cold]
    fn enter_inline(&self, deadline: Option<Deadline>) -> bool {
        let node: NonNull<McsNode> = node::take();
        // SAFETY: `node::take` has just made it, no other thread knows it, and if it enters only
        // `release` gives it back.
        let entered = unsafe { self.enter(node.as_ptr(), deadline) };
        if entered {
            self.holder.store(node.as_ptr(), Ordering::Relaxed); // Relaxed: read by this thread, and see `enter`
        }
        entered
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
        let enter = |node: NonNull<McsNode>| {
            let taken = self.try_enter(node.as_ptr());
            if taken {
                self.holder.store(node.as_ptr(), Ordering::Relaxed); // Relaxed: as in `enter_inline`
            }
            taken
        };
        // SAFETY: a node that was not put at the tail has been shown to no other thread.
        self.tail.is_empty() && unsafe { node::lend(enter) }
    }

    #[cold]
    fn acquire_contended(&self) {
        self.enter_inline(None);
    }

    #[cold]
    fn acquire_until(&self, deadline: Deadline) -> bool {
        let mut pause_ns = 1_000;
        loop {
            let holder = self.holder.load(Ordering::Relaxed); // Relaxed, here and below: a hint
            if self.try_acquire() {
                return true;
            }
            hint::sleep(pause_ns);
            // Only a queue that moves is joined: behind a lock that is held for long, nodes left behind would pile up.
            // (A single thread that takes the lock again and again, with the same node, looks as if it held on.)
            if self.holder.load(Ordering::Relaxed) != holder {
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
        // Relaxed: written by the holder.
        let node = self.holder.load(Ordering::Relaxed);
        // SAFETY: the caller holds the lock by this trait (contract of `PlainLock::release`), so
        // that `enter_inline` or `try_acquire` has written its node to `holder`: it is not null,
        // comes from `sync::node`, and is at the head. When `leave` returns, no thread has a link
        // to it.
        unsafe {
            self.leave(node);
            node::give_back(NonNull::new_unchecked(node));
        }
    }
}

lock_api_form!(Mcs);
mortal!(McsNode { state });

//! The queue of an [`Adaptive`](super::Adaptive): nodes in the order of arrival. The first is the
//! holder, or polls the word.
//!
//! The holder keeps its node while it holds the lock if another node is behind it. It hands the
//! lock over by a message in that node, and only these two threads access a line for it. The
//! holder's thread notes its node, and owns the node's memory. Another thread may release the lock
//! instead. It finds the node from the end of the queue, and leaves the memory to the thread that
//! has noted it.

use core::ptr::{NonNull, null_mut};

use super::{noted, scarcity};
use crate::lock::link::{Link, Linked};
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::sync::{
    Deadline, Woken, futex, hint, mortal, mutation, node, order, process, thread, time,
};

/// The values of a node's state. First it is awake, then asleep, ...
const WAITING: u32 = 0;
const ASLEEP: u32 = 1;
/// ... until it is the first, whose thread is to take the word, ...
const FIRST: u32 = 2;
/// ... or has the lock. Or its thread has left, and a thread that comes to the node takes its
/// memory; ...
const HOLDER: u32 = 3;
const LEFT: u32 = 4;
/// ... or another thread has released the lock instead of the node's thread. Then the node belongs
/// to the thread that has noted it.
const RELEASED: u32 = 5;

/// How often a waiter checks whether CPUs are oversubscribed, in ns.
const WATCH: u64 = if cfg!(loom) { 0 } else { 20_000 };
/// How long a waiter polls its node before it sleeps, in ns. Hand-overs to sleepers are slow, so a
/// waiter sleeps only where the lock is held for long.
const LONGEST_WAIT: u64 = if cfg!(loom) { 0 } else { 5_000_000 };

/// What became of a wait.
pub(super) enum Told {
    First,
    Holder,
    /// The thread is to wait elsewhere; or its deadline has passed.
    Nothing,
}

/// A waiter's node in the queue, or the holder's.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct QueueNode {
    next: Link<QueueNode>,
    /// The one before it when it joined.
    before: AtomicPtr<QueueNode>,
    state: AtomicU32,
    /// The holder's counts: hand-overs of the lock in a row, and those to a thread that had come
    /// back soon.
    passes: AtomicU32,
    soon: AtomicU32,
    generation: u32,
}

impl Default for QueueNode {
    fn default() -> Self {
        Self {
            next: Link::new(),
            before: AtomicPtr::new(null_mut()),
            state: AtomicU32::new(WAITING),
            passes: AtomicU32::new(0),
            soon: AtomicU32::new(0),
            generation: process::generation(),
        }
    }
}

mortal!(QueueNode { state });

// `passes` and `soon` are Relaxed throughout: a thread that reads them holds the lock, or has
// written them.

/// A node that has joined the queue `tail`. The reference is for the node's thread, or for a thread
/// that releases the lock instead.
#[derive(Clone, Copy)]
pub(super) struct QueueNodeRef<'a> {
    qnode: NonNull<QueueNode>,
    tail: &'a Link<QueueNode>,
    /// Whether the node's memory belongs to the thread that has this reference, and not to the
    /// thread that has noted the node.
    is_own: bool,
}

/// How often the lock has been handed over in a row, and how often to a thread that had come back
/// soon.
pub(super) struct Passes {
    pub passes: u32,
    pub soon: u32,
}

impl<'a> QueueNodeRef<'a> {
    /// Joins the queue; returns whether another is before.
    pub(super) fn join(tail: &'a Link<QueueNode>, soon: bool) -> (Self, bool) {
        let qnode: NonNull<QueueNode> = node::take();
        let qnode_ref = Self { qnode, tail, is_own: true };
        let this = qnode_ref.qnode();
        this.soon.store(soon.into(), Ordering::Relaxed);
        // AcqRel: Release, partner of the Acquires in the successor's swap and in `find`, for the
        // initialised node; Acquire, for the predecessor's node.
        let before = tail.swap(qnode.as_ptr(), order!(AcqRel, "adaptive-swap"));
        // In the child of a fork, the parent's nodes do not count.
        let Linked::Node(before) = before else { return (qnode_ref, false) };
        // Release: partner of the Acquire in `find`.
        this.before.store(before, Ordering::Release);
        // Release: partner of the Acquire in `next`. SAFETY: a node stays until its thread has seen
        // that there is none behind it, or has read its successor.
        unsafe { (*before).next.store(qnode.as_ptr(), order!(Release, "adaptive-link")) };
        (qnode_ref, true)
    }

    /// The holder's node, which this thread has noted for the lock at this address; none if the
    /// thread holds the lock without a node, or not at all.
    #[inline]
    pub(super) fn noted(lock: usize, tail: &'a Link<QueueNode>) -> Option<Self> {
        let qnode = if thread::noted()[0] == lock { noted_qnode() } else { None }?;
        still_holder(qnode).then_some(Self { qnode, tail, is_own: true })
    }

    /// The holder's node, for a thread that has the lock and has not noted the node; none in the
    /// child of a fork.
    pub(super) fn find(tail: &'a Link<QueueNode>) -> Option<Self> {
        // Acquire: partner of the Release in `join`.
        let Linked::Node(mut qnode) = tail.load(Ordering::Acquire) else { return None };
        loop {
            let qnode_ref = Self { qnode: NonNull::new(qnode)?, tail, is_own: false };
            // Relaxed: the thread that wrote it has handed over to the thread from which this
            // thread has the lock.
            if qnode_ref.qnode().state.load(Ordering::Relaxed) == HOLDER {
                return Some(qnode_ref);
            }
            qnode = loop {
                // Acquire: partner of the Release in `join`.
                let before = qnode_ref.qnode().before.load(Ordering::Acquire);
                if !before.is_null() {
                    break before;
                }
                hint::spin_loop(); // its thread is about to say it
            };
        }
    }

    fn qnode(&self) -> &QueueNode {
        // SAFETY: a node stays as long as its thread waits there or has noted it, and in the queue
        // as long as the lock is held by a node before it.
        unsafe { self.qnode.as_ref() }
    }

    /// Notes it as the holder's.
    pub(super) fn note(&self, lock: usize) {
        thread::note([lock, self.qnode.as_ptr().expose_provenance()]);
    }

    /// Waits until the node has a message, the deadline has passed, or CPUs are oversubscribed:
    /// then the thread before this one may not run.
    pub(super) fn wait(&self, deadline: Option<Deadline>, jump: u64) -> Told {
        let qnode = self.qnode();
        let start = time::now();
        let mut watched = start;
        loop {
            // Acquire: partner of the Release in `tell`.
            let state = qnode.state.load(order!(Acquire, "adaptive-told"));
            if state >= FIRST {
                return told(state);
            }
            if !time::has_passed(watched, WATCH) {
                hint::spin_loop();
                continue;
            }
            let now = time::now();
            if now.wrapping_sub(watched) > WATCH + jump {
                scarcity::notice(now);
            }
            watched = now;
            if scarcity::has_sign() || deadline.is_some_and(|deadline| deadline.has_passed()) {
                return self.leave(WAITING);
            }
            if now.wrapping_sub(start) > LONGEST_WAIT {
                return self.sleep(deadline);
            }
        }
    }

    #[cold]
    fn sleep(&self, deadline: Option<Deadline>) -> Told {
        let state = &self.qnode().state;
        // Relaxed on success: says only that this thread sleeps. Acquire on failure: partner of the
        // Release in `tell`.
        let (done, failed) = (Ordering::Relaxed, order!(Acquire, "adaptive-told-awake"));
        if let Err(state) = state.compare_exchange(WAITING, ASLEEP, done, failed) {
            return told(state);
        }
        loop {
            let woken = futex::wait(state, ASLEEP, deadline);
            // Acquire: partner of the Release in `tell`.
            let state = state.load(order!(Acquire, "adaptive-told-asleep"));
            if state >= FIRST {
                return told(state);
            }
            if woken == Woken::TimedOut {
                return self.leave(ASLEEP);
            }
        }
    }

    /// Leaves the node to the thread that comes to it, unless the node has a message.
    fn leave(&self, state: u32) -> Told {
        // Release: partner of the Acquire in `tell`: after this only a thread that comes to the
        // node accesses it. Acquire on failure: as in `wait`.
        let (done, failed) = (order!(Release, "adaptive-leave"), Ordering::Acquire);
        match self.qnode().state.compare_exchange(state, LEFT, done, failed) {
            Ok(_) => Told::Nothing,
            Err(state) => told(state),
        }
    }

    /// Called by the first, with the lock: keeps the node for the holder if there is one behind it,
    /// and otherwise gives it up. Returns whether it kept it.
    pub(super) fn keep_as_holder(self) -> bool {
        let qnode = self.qnode();
        if qnode.next.is_empty() && self.is_last() {
            self.give_back();
            return false;
        }
        qnode.passes.store(0, Ordering::Relaxed);
        qnode.soon.store(0, Ordering::Relaxed);
        // Relaxed: for this thread, and for a thread that releases the lock in its stead.
        qnode.state.store(HOLDER, Ordering::Relaxed);
        true
    }

    /// What the holder has been told.
    pub(super) fn passes(&self) -> Passes {
        let qnode = self.qnode();
        let (passes, soon) =
            (qnode.passes.load(Ordering::Relaxed), qnode.soon.load(Ordering::Relaxed));
        Passes { passes, soon }
    }

    /// Gives up the node of the holder or the first, and hands the lock to the next in the queue.
    /// Returns false if there is none.
    pub(super) fn hand_over(self, passes: &Passes) -> bool {
        self.pass(HOLDER, |next| {
            next.passes.store(passes.passes, Ordering::Relaxed);
            next.soon.fetch_add(passes.soon, Ordering::Relaxed);
        })
    }

    /// Gives up the node of the holder or the first. If there is a next node, it becomes the first.
    pub(super) fn make_next_first(self) {
        self.pass(FIRST, |_| ());
    }

    fn pass(self, message: u32, prepare: impl Fn(&QueueNode)) -> bool {
        let mut qnode_ref = self;
        loop {
            let next = qnode_ref.next();
            qnode_ref.give_back();
            let Some(next) = next else { return false };
            prepare(next.qnode());
            if next.tell(message) {
                return true;
            }
            qnode_ref = next;
        }
    }

    /// Sends a message to the node's thread; returns false if that thread does not wait there any
    /// more.
    fn tell(&self, message: u32) -> bool {
        let state = &raw const self.qnode().state;
        // AcqRel: Release, partner of the Acquires in `wait` and `sleep`; Acquire, partner of the
        // Release in `leave`. SAFETY: the node is there until the swap has taken effect.
        let before = unsafe { (*state).swap(message, order!(AcqRel, "adaptive-tell")) };
        if before == ASLEEP {
            futex::wake(state, 1);
        }
        before != LEFT
    }

    /// The next in the queue; none if the queue is empty, or if the next is the parent's in the
    /// child of a fork.
    fn next(&self) -> Option<Self> {
        loop {
            // Acquire: partner of the Release in `join`.
            if let Linked::Node(next) = self.qnode().next.load(order!(Acquire, "adaptive-next")) {
                return NonNull::new(next).map(|qnode| Self { qnode, is_own: true, ..*self });
            }
            if self.is_last() {
                return None;
            }
            if self.qnode().generation != process::generation() {
                // A thread that has come since then did not find this node, and polls the word.
                _ = self.tail.clear_ghost(Ordering::Relaxed);
                return None;
            }
            if mutation!("adaptive-forgets") {
                return None; // and a thread that is about to link itself gets no message
            }
            hint::spin_loop();
        }
    }

    /// Leaves the queue empty if this node is its last; returns whether it did.
    fn is_last(&self) -> bool {
        // Relaxed: a thread that joins an empty queue reads only the word of our data.
        self.tail.clear(self.qnode.as_ptr(), self.qnode().generation, Ordering::Relaxed)
    }

    /// Parts with a node that has left the queue.
    fn give_back(self) {
        if !self.is_own {
            // Release: partner of the Acquire in `noted`. From here on its thread may give it back.
            self.qnode().state.store(RELEASED, order!(Release, "adaptive-release-elsewhere"));
            return;
        }
        // SAFETY: from `node::take` in `join`; it has left the queue.
        unsafe { node::give_back(self.qnode) };
    }
}

/// Whether the calling thread has noted a node by which it holds a lock.
pub(super) fn has_noted() -> bool {
    noted_qnode().is_some_and(still_holder)
}

/// The node that the thread has noted, for any lock.
#[inline]
fn noted_qnode() -> Option<NonNull<QueueNode>> {
    let [_, qnode] = thread::noted();
    if noted::is_time(qnode) {
        return None;
    }
    NonNull::new(core::ptr::with_exposed_provenance_mut(qnode))
}

/// Whether the node that the calling thread has noted is still the holder's. If another thread has
/// released the lock, the node is given back.
#[cold]
fn still_holder(qnode: NonNull<QueueNode>) -> bool {
    // Acquire: partner of the Release in `give_back`.
    let acquire = order!(Acquire, "adaptive-released-elsewhere");
    // SAFETY: only its own thread gives a noted node back: here, once it has seen that another has
    // released the lock.
    let is_holder = unsafe { qnode.as_ref() }.state.load(acquire) == HOLDER;
    if !is_holder {
        noted::forget();
        // SAFETY: from `node::take` in `join`; a thread that has released the lock does not touch
        // it any more.
        unsafe { node::give_back(qnode) };
    }
    is_holder
}

fn told(state: u32) -> Told {
    if state == HOLDER { Told::Holder } else { Told::First }
}

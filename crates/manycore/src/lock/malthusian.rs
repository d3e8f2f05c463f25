//! `malthusian`: a short queue, because releases set aside the waiters that are not needed to keep
//! the lock busy.
//!
//! # Idea
//!
//! More waiters do not keep a lock busier that is always held. But each thread that acquires it
//! again needs its data in a cache, and a CPU. So, if there are two or more waiters, a release
//! *culls* the first: it moves the first to a passive set, where that waiter sleeps, and hands the
//! lock to the second. A few threads then pass the lock among themselves, as many as keep it busy.
//! If a release finds no waiter in the queue, the youngest of the passive set gets the lock. By
//! every thousandth release the oldest gets it, so that no thread waits for ever.
//!
//! # Source
//!
//! D. Dice, "Malthusian Locks", EuroSys 2017, its lock MCSCR. There the passive set is part of the
//! lock. Here each holder passes it to the next, so that the lock is as small as that of `mcs`.
//! There a release calls the oldest with a probability of one in a thousand; here it counts. A
//! waiter sleeps after some microseconds.
//!
//! # Fork
//!
//! In the child of a fork, the waiters of the queue and of the passive set are the parent's. The
//! holder's note about a passive set is void if the lock was taken in another process.
//!
//! # Memory order
//!
//! That of [`Queue`]. Only the owner reads and writes the links between nodes that have joined the
//! queue, and the notes in them: the message that hands the lock over orders these accesses
//! (Release, Acquire). Where a waiter of the passive set is put at the end of the queue, that
//! publishes it (Release) to the next thread to join (Acquire).
//!
//! # Cost
//!
//! Uncontended, the cost of `mcs` and a read of a line that the holder has. Contended, a release
//! accesses the lines of two waiters, and a line of the passive set if a waiter is culled.
//!
//! # When not to use it
//!
//! Where waiting times should be similar for all: most are short, but some last a thousand times as
//! many hand-offs as there are waiters. With a CPU for each thread and data that fits into its
//! cache: then culling has a cost and no gain, above all with several NUMA nodes.

use core::ptr::null_mut;

use super::gate::MESSAGE;
use super::held_queue::HeldQueue;
use super::plain::{PlainLock, without_node};
use super::queue::{Queue, QueueNode};
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::sync::{const_new, mutation, tuning};
use crate::{LockInfo, Order};

/// To the one that gets the lock.
const GRANTED: u32 = MESSAGE;

/// The holder's notes in a node, written before it hands over. Relaxed throughout: the message
/// orders.
#[derive(Debug, Default)]
struct Notes {
    /// For a waiter in the passive set: the waiters culled before and after it, or null.
    elder: Pointer,
    younger: Pointer,
    /// If it is the holder's: the passive set, or null.
    youngest: Pointer,
    eldest: Pointer,
    /// In the holder's node: the number of hand-overs since the eldest was last called.
    passes: AtomicU32,
}

/// A pointer to a node.
#[derive(Debug)]
struct Pointer(AtomicPtr<QueueNode<Notes>>);

impl Default for Pointer {
    #[inline]
    fn default() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }
}

impl Pointer {
    #[inline]
    fn get(&self) -> *mut QueueNode<Notes> {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, qnode: *mut QueueNode<Notes>) {
        self.0.store(qnode, Ordering::Relaxed);
    }
}

/// The passive set, which belongs to the holder. If it has a youngest waiter, it has an oldest one.
struct Passive {
    youngest: *mut QueueNode<Notes>,
    eldest: *mut QueueNode<Notes>,
}

impl Passive {
    /// What the holder was handed.
    #[inline]
    fn of(holder: &QueueNode<Notes>) -> Self {
        let (youngest, eldest) = (holder.notes.youngest.get(), holder.notes.eldest.get());
        if youngest.is_null() || holder.is_of_this_process() {
            Self { youngest, eldest }
        } else {
            Self { youngest: null_mut(), eldest: null_mut() }
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.youngest.is_null()
    }

    /// Adds a waiter that was removed from the queue.
    ///
    /// # Safety
    ///
    /// The caller is the holder, and the node belongs to a thread that waits.
    unsafe fn put(&mut self, qnode: *mut QueueNode<Notes>) {
        // SAFETY: a node stays until its thread has its message, and only the holder, which is the
        // caller, sends one: so `qnode` and the nodes of the passive set are valid.
        unsafe {
            (*qnode).set_next(null_mut());
            (*qnode).notes.elder.set(self.youngest);
            match self.youngest.as_ref() {
                Some(youngest) => youngest.notes.younger.set(qnode),
                None => self.eldest = qnode,
            }
        }
        self.youngest = qnode;
    }

    /// Takes the youngest out.
    ///
    /// # Safety
    ///
    /// The caller is the holder, and there is one.
    unsafe fn take_youngest(&mut self) -> *mut QueueNode<Notes> {
        let taken = self.youngest;
        // SAFETY: there is one to take (contract of this function), and the threads of the passive
        // set wait at their nodes until the holder, which the caller is, tells them.
        unsafe {
            self.youngest = (*taken).notes.elder.get();
            match self.youngest.as_ref() {
                Some(youngest) => youngest.notes.younger.set(null_mut()),
                None => self.eldest = null_mut(),
            }
        }
        taken
    }

    /// Takes the eldest out.
    ///
    /// # Safety
    ///
    /// The caller is the holder, and there is one.
    unsafe fn take_eldest(&mut self) -> *mut QueueNode<Notes> {
        let taken = self.eldest;
        // SAFETY: there is one to take (contract of this function), and the threads of the passive
        // set wait at their nodes until the holder, which the caller is, tells them.
        unsafe {
            self.eldest = (*taken).notes.younger.get();
            match self.eldest.as_ref() {
                Some(eldest) => eldest.notes.elder.set(null_mut()),
                None => self.youngest = null_mut(),
            }
        }
        taken
    }
}

/// The Malthusian lock.
#[derive(Debug)]
#[repr(transparent)]
pub struct Malthusian(HeldQueue<Notes>);

impl Default for Malthusian {
    fn default() -> Self {
        Self::new()
    }
}

impl Malthusian {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self(HeldQueue::new())
        }
    }
}

/// Hands the lock over: `next` is behind the holder in the queue. Or a waiter of the passive set
/// gets the queue: the oldest if it is the oldest's turn.
///
/// # Safety
///
/// The node is the holder's.
#[cold]
unsafe fn hand_over(
    qnode: *mut QueueNode<Notes>,
    next: Option<*mut QueueNode<Notes>>,
    mut passive: Passive,
    is_eldests_turn: bool,
) {
    // SAFETY: the node is the holder's own (contract of this function). The others belong to
    // threads in the queue or the passive set, which stay there until they get a message, and only
    // the holder sends one. `is_eldests_turn`, or no `next`, implies that the passive set is not
    // empty.
    unsafe {
        let heir = match next {
            Some(next) if is_eldests_turn => {
                let eldest = passive.take_eldest();
                (*eldest).set_next(next);
                eldest
            }
            Some(next) => match (*next).next() {
                Some(second) => {
                    passive.put(next);
                    second
                }
                None => next,
            },
            None if is_eldests_turn => passive.take_eldest(),
            None => passive.take_youngest(),
        };
        let passes = (*qnode).notes.passes.load(Ordering::Relaxed);
        let passes = if is_eldests_turn || passive.is_empty() { 0 } else { passes + 1 };
        let heirs = &(*heir).notes;
        heirs.passes.store(passes, Ordering::Relaxed);
        heirs.youngest.set(passive.youngest);
        heirs.eldest.set(passive.eldest);
        QueueNode::tell(heir, GRANTED);
    }
}

// SAFETY: only the head of the queue, or a thread that it has told, holds the lock, until it has
// left the queue to another or empty; sixteen bytes, and zero is an empty queue.
unsafe impl PlainLock for Malthusian {
    const INFO: LockInfo = LockInfo {
        name: "malthusian",
        summary: "mcs that sets aside waiters which are not needed to keep the lock busy",
        source: "Dice, EuroSys 2017",
        order: Order::Queued,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        self.0.try_acquire()
    }

    #[cold]
    fn acquire_contended(&self) {
        self.0.acquire(Notes::default());
    }

    #[inline]
    unsafe fn release(&self) {
        let pass_on = |queue: &Queue<Notes>, qnode: *mut QueueNode<Notes>| {
            // SAFETY: `HeldQueue::release` passes the holder's node, which is at the head; `called`
            // is in the passive set, where `put` has cleared its link.
            unsafe {
                let passive = Passive::of(&*qnode);
                let passes = (*qnode).notes.passes.load(Ordering::Relaxed);
                let is_eldests_turn = passes >= tuning::passes() && !passive.is_empty();
                let called = if is_eldests_turn { passive.eldest } else { passive.youngest };
                let last = if mutation!("malthusian-forgets") { null_mut() } else { called };
                let next = queue.leave_to(qnode, last);
                if next.is_some() || !last.is_null() {
                    hand_over(qnode, next, passive, is_eldests_turn);
                }
            }
        };
        // SAFETY: the caller holds the lock (contract of `PlainLock::release`), and
        // `queue.leave_to` has made the node leave when `pass_on` returns.
        unsafe { self.0.release(pass_on) }
    }
}

without_node!(Malthusian);

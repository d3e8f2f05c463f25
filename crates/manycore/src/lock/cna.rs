//! `cna`: one queue, from which a release removes waiters on other NUMA nodes.
//!
//! # Idea
//!
//! There is the queue of `mcs`, and a second one. A release searches the queue for the first waiter
//! on its own NUMA node, and moves the waiters before it to the end of the second queue. So the
//! lock stays on a node while threads wait there. If no thread waits there, or after a thousand
//! such releases in a row, the second queue is put back before the first, and its oldest waiter
//! gets the lock. Each holder passes the second queue to the next. So the lock is as small as that
//! of `mcs`, however many nodes there are.
//!
//! # Source
//!
//! D. Dice and A. Kogan, "Compact NUMA-Aware Locks", EuroSys 2019. There the second queue is passed
//! on in the word on which a waiter spins; here it has words of its own, since a waiter sleeps on
//! that word. There a release leaves its node with a probability of one in 65536; here after a
//! fixed and smaller number of releases, so that others wait less. A waiter sleeps after some
//! microseconds.
//!
//! # Fork
//!
//! In the child of a fork, the waiters of both queues are the parent's. The holder's note about a
//! second queue is void if the lock was taken in another process.
//!
//! # Memory order
//!
//! The same as for [`Queue`]. The holder reads and writes the links between queue nodes that have
//! joined it, and the notes in them: the message that hands the lock over orders them (Release,
//! Acquire). When the second queue takes the place of an empty first one, that also publishes them
//! (Release) to the thread that comes behind (Acquire).
//!
//! # Cost
//!
//! Uncontended: as `mcs`, and a read of a line that the owner has. Contended: a release reads the
//! line of each waiter that it passes over. It passes over a waiter only once, because the waiter
//! is then in the second queue.
//!
//! # When not to use it
//!
//! With more runnable threads than CPUs, as `mcs`. Where service has to be in order of arrival.

use core::ptr::null_mut;

use super::gate::MESSAGE;
use super::held_queue::HeldQueue;
use super::plain::{PlainLock, without_node};
use super::queue::{Queue, QueueNode};
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::sync::{const_new, cpu, mutation, tuning};
use crate::{LockInfo, Order};

/// To the one that gets the lock.
const GRANTED: u32 = MESSAGE;

/// The NUMA node of a holder that has not waited, and so has not asked for its node.
const NOWHERE: u32 = u32::MAX;

/// The notes in a queue node. Relaxed throughout: `node` is written before the queue node joins the
/// queue, and the holder writes the rest before it hands over.
#[derive(Debug)]
struct Notes {
    /// The node of memory on which its thread waits.
    node: u32,
    /// How often the lock has been passed on within a node while others were set aside.
    passes: AtomicU32,
    /// The second queue, if this is the holder's queue node: its first, and its last; or null.
    first: AtomicPtr<QueueNode<Notes>>,
    last: AtomicPtr<QueueNode<Notes>>,
}

impl Notes {
    fn of_node(node: u32) -> Self {
        let none = || AtomicPtr::new(null_mut());
        Self { node, passes: AtomicU32::new(0), first: none(), last: none() }
    }
}

impl Default for Notes {
    #[inline]
    fn default() -> Self {
        Self::of_node(NOWHERE)
    }
}

/// The second queue, which belongs to the holder. Either it has a first and a last queue node, with
/// none behind the last; or it is empty.
struct Aside {
    first: *mut QueueNode<Notes>,
    last: *mut QueueNode<Notes>,
}

impl Aside {
    /// What the holder was handed.
    #[inline]
    fn of(holder: &QueueNode<Notes>) -> Self {
        let notes = &holder.notes;
        let (first, last) =
            (notes.first.load(Ordering::Relaxed), notes.last.load(Ordering::Relaxed));
        if last.is_null() || holder.is_of_this_process() {
            Self { first, last }
        } else {
            Self { first: null_mut(), last: null_mut() }
        }
    }

    fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Removes the first waiter of a NUMA node from the main queue, which begins with `next`, and
    /// moves the waiters before it to the second queue. None if there is none.
    ///
    /// # Safety
    ///
    /// The caller is the holder.
    unsafe fn pass_over(
        &mut self,
        next: *mut QueueNode<Notes>,
        node: u32,
    ) -> Option<*mut QueueNode<Notes>> {
        let (mut passed_over, mut waiter) = (null_mut(), next);
        // SAFETY: waiters stay. The last waiter that was passed over has another behind it, so no
        // other thread writes its link.
        unsafe {
            while (*waiter).notes.node != node {
                passed_over = waiter;
                waiter = (*waiter).next()?;
            }
            if !passed_over.is_null() {
                (*passed_over).set_next(null_mut());
                match self.last.as_ref() {
                    Some(last) => last.set_next(next),
                    None => self.first = next,
                }
                self.last = passed_over;
            }
        }
        Some(waiter)
    }

    /// Puts the second queue back before the first queue, which begins at `next`. Returns the new
    /// first waiter.
    ///
    /// # Safety
    ///
    /// The caller is the holder.
    unsafe fn put_back(&mut self, next: *mut QueueNode<Notes>) -> *mut QueueNode<Notes> {
        // SAFETY: the last node of the second queue waits for its message, and only the holder
        // sends one. No queue node is behind it, so no other thread writes its link.
        match unsafe { self.last.as_ref() } {
            None => next,
            Some(last) => {
                last.set_next(next);
                self.take_all()
            }
        }
    }

    /// The first, behind which are the others.
    fn take_all(&mut self) -> *mut QueueNode<Notes> {
        self.last = null_mut();
        core::mem::replace(&mut self.first, null_mut())
    }
}

/// The compact NUMA-aware lock.
#[derive(Debug)]
#[repr(transparent)]
pub struct Cna(HeldQueue<Notes>);

impl Default for Cna {
    fn default() -> Self {
        Self::new()
    }
}

impl Cna {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self(HeldQueue::new())
        }
    }
}

/// Removes the holder's node: `next` is behind it in the main queue. Or the main queue becomes the
/// waiters that were set aside.
///
/// # Safety
///
/// The queue node is the holder's.
#[cold]
unsafe fn hand_over(
    qnode: *mut QueueNode<Notes>,
    next: Option<*mut QueueNode<Notes>>,
    mut aside: Aside,
) {
    // SAFETY: the queue node is the holder's own (contract of this function). The others belong to
    // threads in one of the two queues, which wait there until they get a message, and only the
    // holder sends one.
    unsafe {
        let notes = &(*qnode).notes;
        let passes = notes.passes.load(Ordering::Relaxed);
        let near = match next {
            Some(next) if passes < tuning::passes() => {
                let node = if notes.node == NOWHERE { cpu::node() } else { notes.node };
                aside.pass_over(next, node)
            }
            _ => None,
        };
        let heir = near.unwrap_or_else(|| match next {
            Some(next) => aside.put_back(next),
            None => aside.take_all(),
        });
        let heirs = &(*heir).notes;
        let passes = if aside.is_empty() { 0 } else { passes + 1 };
        heirs.passes.store(passes, Ordering::Relaxed);
        heirs.first.store(aside.first, Ordering::Relaxed);
        heirs.last.store(aside.last, Ordering::Relaxed);
        QueueNode::tell(heir, GRANTED);
    }
}

// SAFETY: only the head of the main queue, or a thread that it has told, holds the lock, until it
// has left that to another or empty; sixteen bytes, and zero is an empty queue.
unsafe impl PlainLock for Cna {
    const INFO: LockInfo = LockInfo {
        name: "cna",
        summary: "mcs that passes over waiters on other nodes of memory; spins, then sleeps in its place",
        source: "Dice and Kogan, EuroSys 2019",
        order: Order::Queued,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        self.0.try_acquire()
    }

    #[cold]
    fn acquire_contended(&self) {
        self.0.acquire(Notes::of_node(cpu::node()));
    }

    #[inline]
    unsafe fn release(&self) {
        let pass_on = |queue: &Queue<Notes>, qnode: *mut QueueNode<Notes>| {
            // SAFETY: `HeldQueue::release` passes the holder's queue node, which is at the head; no
            // other is behind the last one of the second queue, by `Aside`'s invariant.
            unsafe {
                let aside = Aside::of(&*qnode);
                let last = if mutation!("cna-forgets") { null_mut() } else { aside.last };
                let next = queue.leave_to(qnode, last);
                if next.is_some() || !last.is_null() {
                    hand_over(qnode, next, aside);
                }
            }
        };
        // SAFETY: the caller holds the lock (contract of `PlainLock::release`), and
        // `queue.leave_to` has made the queue node leave when `pass_on` returns.
        unsafe { self.0.release(pass_on) }
    }
}

without_node!(Cna);

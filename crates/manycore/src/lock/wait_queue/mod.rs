//! Waiting until somebody else says so: the algorithm of a condition variable.
//!
//! # Idea
//!
//! A list of waiters in order of arrival. A waiter's record, the [`Waiter`], lies on its own stack and has a word of
//! its own to sleep on, so that a signal wakes the one thread that it is meant for. A caller puts its record on the
//! list *while it still holds the mutex*, releases the mutex and parks; whoever changes what it waits for afterwards
//! finds it on the list, whether it sleeps yet or not.
//!
//! ```
//! use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
//! use manycore::lock::{Futex, InlineLock, WaitQueue, Waiter};
//!
//! static MUTEX: Futex = Futex::new();
//! static CHANGED: WaitQueue = WaitQueue::new();
//! static DONE: AtomicBool = AtomicBool::new(false); // only touched with the mutex held
//!
//! std::thread::scope(|s| {
//!     s.spawn(|| {
//!         MUTEX.acquire();
//!         DONE.store(true, Relaxed);
//!         unsafe { MUTEX.release() }; // SAFETY: acquired above
//!         CHANGED.signal();
//!     });
//!
//!     MUTEX.acquire();
//!     while !DONE.load(Relaxed) {
//!         let waiter = Waiter::new();
//!         // SAFETY: the mutex is held; the waiter lives until it has been signalled.
//!         unsafe {
//!             CHANGED.enqueue(&waiter);
//!             MUTEX.release();
//!         }
//!         waiter.park(None);
//!         MUTEX.acquire();
//!     }
//!     unsafe { MUTEX.release() }; // SAFETY: acquired above
//! });
//! ```
//!
//! # Source
//!
//! Ours. That each waiter has something of its own to sleep on, in a list in order of arrival, is the advice of
//! A. D. Birrell, "Implementing Condition Variables with Semaphores", 2003, who also tells how naive ones go wrong.
//!
//! # Who decides
//!
//! A signal and a time-out can meet. Both announce themselves in the waiter's word by an atomic *or*, and whoever is
//! first wins: a signaller sets *claimed*, a waiter that gives up sets *leaving*. A signaller that finds *leaving*
//! goes on to the next waiter, so that no signal is lost; a waiter that finds *claimed* has been signalled.
//!
//! # Whose memory, until when
//!
//! A condition variable may be destroyed, and its memory reused, as soon as all its waiters have been woken, although
//! they may not have run yet. So whoever has been signalled does not touch the queue again. And a woken waiter's
//! stack frame is gone at once, so *signalled* is the last that a signaller writes to a waiter; it has read the
//! waiter's place in the list before, and has unlocked the list. What may follow is a wake-up by address, which
//! touches no memory. Only a waiter that leaves by itself does touch the queue; who destroys it waits for those
//! with [`drain`](WaitQueue::drain).
//!
//! # Memory order
//!
//! The list and the records in it are ordered by the list's lock. *Signalled* (Release) is read by the waiter
//! (Acquire) before it returns and its record dies: it sees all that its signaller did, and the signaller's reads of
//! the record come before whatever is put in that memory next. *Claimed* and *leaving* are read-modify-writes of one
//! word and need no more than their total order.
//!
//! # Cost
//!
//! A wait: the list's lock, an *or*, and a sleep. A signal without waiters: one load. With one: the list's lock, two
//! *or*s and a wake-up, which is left out if the waiter does not sleep yet. A broadcast wakes all, and they then
//! compete for the mutex.
//!
//! # When not to use it
//!
//! Between processes: the list is one of addresses. For waits of less than a microsecond: a waiter sleeps at once.

mod list;

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{Deadline, Woken, const_new, futex, hint, mortal, order};
use list::List;

/// The owner sleeps or is about to: whoever signals it has to wake it.
const ASLEEP: u32 = 1;
/// The owner has given up, and will take its record off the list: signallers pass it over.
const LEAVING: u32 = 2;
/// A signaller has chosen this waiter, and will set `SIGNALLED`. Without effect if `LEAVING` was there before.
const CLAIMED: u32 = 4;
/// The record belongs to its owner again.
const SIGNALLED: u32 = 8;

/// One thread's record while it waits.
#[derive(Debug)]
pub struct Waiter {
    state: AtomicU32,
    /// Neighbours in the list; only touched with the list locked, or by the signaller that has claimed the waiter.
    next: UnsafeCell<*const Waiter>,
    prev: UnsafeCell<*const Waiter>,
}

// SAFETY: the state is atomic, and the neighbours are touched as their comment says.
unsafe impl Sync for Waiter {}

impl Waiter {
    const_new! {
        /// A record to pass to [`WaitQueue::enqueue`], once.
        pub fn new() -> Self {
            Self {
                state: AtomicU32::new(0),
                next: UnsafeCell::new(core::ptr::null()),
                prev: UnsafeCell::new(core::ptr::null()),
            }
        }
    }

    /// Sleeps until this waiter is signalled or the deadline passes; says whether it was signalled.
    ///
    /// After false the record is still on the list, or a signal is under way: call [`WaitQueue::withdraw`].
    ///
    /// Holds nothing and leaves nothing to clean up, so that a thread may be cancelled in here. Whoever catches that
    /// withdraws the waiter, and if it had been signalled signals another.
    pub fn park(&self, deadline: Option<Deadline>) -> bool {
        while let Some(expected) = self.asleep() {
            if futex::wait(&self.state, expected, deadline) == Woken::TimedOut {
                return false;
            }
        }
        true
    }

    /// For callers that make the system call of [`park`](Self::park) themselves: announces that the owner is about to
    /// sleep on [`word`](Self::word) while that holds the value returned; `None` once the waiter has been signalled.
    pub fn asleep(&self) -> Option<u32> {
        // Acquire: partner of the Release in `mark`.
        let before = self.state.fetch_or(ASLEEP, order!(Acquire, "wait-park-acquire"));
        (before & SIGNALLED == 0).then_some(before | ASLEEP)
    }

    /// The word to sleep on.
    pub fn word(&self) -> &AtomicU32 {
        &self.state
    }

    /// Chooses this waiter for a signal; false if it is leaving. The list is locked.
    fn claim(&self) -> bool {
        // Relaxed: only the order of this and `withdraw`'s *or* matters, and they are of one word.
        self.state.fetch_or(CLAIMED, Ordering::Relaxed) & LEAVING == 0
    }

    /// Gives a claimed waiter back to its owner, who may be gone before this returns.
    ///
    /// # Safety
    ///
    /// The caller has claimed the waiter and taken it off the list, has unlocked the list, and does not touch the
    /// waiter again.
    unsafe fn mark(waiter: *const Waiter) {
        // SAFETY: the owner waits for the mark, so the record is there until the *or* has taken effect.
        let state = unsafe { &(*waiter).state };
        let address = core::ptr::from_ref(state);
        // Release: partner of the Acquire in `park`.
        if state.fetch_or(SIGNALLED, order!(Release, "wait-signal-release")) & ASLEEP != 0 {
            futex::wake(address, 1);
        }
    }
}

impl Default for Waiter {
    fn default() -> Self {
        Self::new()
    }
}

/// The waiters of one condition variable. All zero is a queue without waiters.
#[derive(Debug)]
#[repr(transparent)]
pub struct WaitQueue {
    list: List,
}

#[cfg(not(loom))]
const _: () =
    assert!(size_of::<WaitQueue>() <= 24, "it lives in a pthread_cond_t, beside other things");

impl WaitQueue {
    const_new! {
        /// A queue without waiters.
        pub fn new() -> Self {
            Self { list: List::new() }
        }
    }

    /// Puts a waiter at the end of the queue. The caller holds the mutex that its condition is changed under.
    ///
    /// # Safety
    ///
    /// The waiter is new. It stays where it is until [`park`](Waiter::park) has returned true or
    /// [`withdraw`](Self::withdraw) has returned, and the queue until then or until it was drained.
    pub unsafe fn enqueue(&self, waiter: &Waiter) {
        self.list.lock().push(waiter);
    }

    /// Takes back a waiter whose `park` has returned false, or did not return; says whether it came in time.
    ///
    /// False means that the waiter has been signalled: the caller has to act on that, or to signal another.
    ///
    /// # Safety
    ///
    /// The waiter was put on this queue, and this is its first `withdraw`.
    pub unsafe fn withdraw(&self, waiter: &Waiter) -> bool {
        // Relaxed: see `claim`. Nothing that the signaller did is looked at before `park` has acquired it.
        if waiter.state.fetch_or(LEAVING, Ordering::Relaxed) & CLAIMED != 0 {
            waiter.park(None); // The signaller is between two steps: until the mark the record is not ours.
            return false;
        }
        // SAFETY: nobody has claimed the waiter and nobody will, so it is on the list, and its queue cannot be gone:
        // whoever destroys the queue drains it first.
        unsafe { self.list.lock().remove(waiter) };
        true
    }

    /// Wakes the waiter that has waited for longest, if there is one.
    pub fn signal(&self) {
        if self.list.looks_empty() {
            return;
        }
        let list = self.list.lock();
        let Some(waiter) = list.iter().find(|w| w.claim()) else { return };
        // SAFETY: it was just found on the list.
        unsafe { list.remove(waiter) };
        let waiter = core::ptr::from_ref(waiter);
        drop(list);
        // SAFETY: claimed, removed, unlocked, and not touched again.
        unsafe { Waiter::mark(waiter) };
    }

    /// Wakes all waiters.
    pub fn broadcast(&self) {
        if self.list.looks_empty() {
            return;
        }
        let chosen = self.list.lock().extract(Waiter::claim);
        // A waiter's link is read before its mark, with which the record may vanish.
        let mut next = chosen;
        while !next.is_null() {
            let waiter = next;
            // SAFETY: claimed and not marked yet, so it is there, and its links belong to the one who claimed it.
            next = unsafe { (*waiter).next.with(|n| *n) };
            // SAFETY: claimed, removed, unlocked, and not touched again.
            unsafe { Waiter::mark(waiter) };
        }
    }

    /// Waits until the queue is empty: to be called before its memory is used for something else.
    ///
    /// Whoever destroys a condition variable has woken its waiters. Those that were about to leave by themselves, by
    /// a time-out or a cancellation, may still have to take themselves off the list.
    pub fn drain(&self) {
        let mut pause_ns = 1_000;
        while !self.list.lock().is_empty() {
            hint::sleep(pause_ns);
            pause_ns = (pause_ns * 2).min(1_000_000);
        }
    }
}

impl Default for WaitQueue {
    fn default() -> Self {
        Self::new()
    }
}

mortal!(Waiter { state, next, prev });

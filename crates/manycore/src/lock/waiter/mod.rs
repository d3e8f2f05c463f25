//! One thread's record while it waits for a signal that is meant for it alone.
//!
//! The record is on the waiting thread's stack, is linked into a [`chain`], and has a word of its
//! own on which to sleep.
//!
//! # Who decides
//!
//! A signal and a time-out can meet. Both announce themselves in the waiter's word by an atomic
//! *or*, and the first of them wins: a signaller sets *claimed*, a waiter that gives up sets
//! *leaving*. A signaller that finds *leaving* goes on to the next waiter, so that no signal is
//! lost. A waiter that finds *claimed* has been signalled.
//!
//! # Whose memory, until when
//!
//! A signalled waiter's stack frame may be gone at once. So *signalled* is a signaller's last write
//! to it: before that, the signaller has removed the waiter from the chain and has unlocked the
//! chain. Only a wake-up by address may follow, which accesses no memory.
//!
//! # Memory order
//!
//! The waiter reads *signalled* (Release, Acquire) before it returns and its record's memory is
//! reused. So it sees all that its signaller did, and the signaller's reads of the record come
//! before the next writes to that memory. *Claimed* and *leaving* are read-modify-writes of one
//! word and need no more than their total order.

pub(super) mod chain;

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{Deadline, Woken, const_new, futex, hint, mortal, mutation, order, time};

/// The owner sleeps or is about to: a thread that signals it has to wake it.
const ASLEEP: u32 = 1;
/// The owner has given up, and will remove its record from the chain: signallers do not choose it.
const LEAVING: u32 = 2;
/// A signaller has chosen this waiter, and will set `SIGNALLED`. Without effect if `LEAVING` was
/// set before.
const CLAIMED: u32 = 4;
/// The record belongs to its owner again.
const SIGNALLED: u32 = 8;
/// The owner polls before it sleeps.
const POLLS: u32 = 16;
/// The first bit of a signaller's additional message.
const MESSAGE: u32 = 32;

/// How long the owner polls, in ns: about half of the time to wake a thread.
const POLL: u64 = if cfg!(loom) { 0 } else { 5_000 };

/// One thread's record while it waits.
#[derive(Debug)]
pub struct Waiter {
    state: AtomicU32,
    /// What the thread waits for: a number of the chain's owner.
    role: usize,
    /// Neighbours in the chain; only accessed with the chain locked, or by the signaller that has
    /// claimed the waiter. Once the waiter is marked, `next` belongs to its owner, and leads to the
    /// next waiter of its row, see `mark_in_rows`.
    next: UnsafeCell<*const Waiter>,
    prev: UnsafeCell<*const Waiter>,
}

// SAFETY: the state is atomic, the role does not change, and neighbours are touched with the chain
// locked or by the one signaller that has claimed the waiter.
unsafe impl Sync for Waiter {}

impl Waiter {
    /// What a signaller can say is below this.
    pub const MESSAGES: u32 = u32::MAX / MESSAGE + 1;

    const_new! {
        /// A record for one wait.
        pub fn new() -> Self {
            Self::with_role(0)
        }
    }

    const_new! {
        pub(super) fn with_role(role: usize) -> Self {
            Self {
                state: AtomicU32::new(0),
                role,
                next: UnsafeCell::new(core::ptr::null()),
                prev: UnsafeCell::new(core::ptr::null()),
            }
        }
    }

    /// Makes the owner poll first. For a thread that is about to add this waiter to a chain.
    pub(super) fn ask_to_poll(&self) {
        self.state.fetch_or(POLLS, Ordering::Relaxed); // Relaxed: for its owner
    }

    /// Whether its owner sleeps or is about to.
    pub(super) fn is_asleep(&self) -> bool {
        self.state.load(Ordering::Relaxed) & ASLEEP != 0 // Relaxed: a hint
    }

    pub(super) fn role(&self) -> usize {
        self.role
    }

    /// Polls or sleeps until this waiter is signalled or the deadline passes; returns whether it
    /// was signalled.
    ///
    /// After the result false, the record is still in its queue, or a signal is under way: the
    /// waiter has to be withdrawn.
    ///
    /// The function holds nothing and leaves nothing to clean up, so that a thread may be cancelled
    /// in it. A thread that catches the cancellation withdraws the waiter. If the waiter had been
    /// signalled, the thread signals another.
    pub fn park(&self, deadline: Option<Deadline>) -> bool {
        if self.poll() {
            return true;
        }
        while let Some(expected) = self.asleep() {
            if futex::wait(&self.state, expected, deadline) == Woken::TimedOut {
                return false;
            }
        }
        true
    }

    /// Polls for a signal, for less time than a sleep costs, if its queue has
    /// [decided](super::WaitQueue::enqueue) that polling is worth its cost; returns whether there
    /// was a signal.
    pub fn poll(&self) -> bool {
        // Relaxed: written by this thread.
        if self.state.load(Ordering::Relaxed) & POLLS == 0 {
            return false;
        }
        let start = time::now();
        loop {
            // Acquire: partner of the Release in `mark`.
            if self.state.load(order!(Acquire, "waiter-poll-acquire")) & SIGNALLED != 0 {
                return true;
            }
            if time::has_passed(start, POLL) {
                return false;
            }
            hint::spin_loop();
        }
    }

    /// For callers that make the system call of [`park`](Self::park) themselves: announces that the
    /// owner is about to sleep on [`word`](Self::word) while that holds the value returned; `None`
    /// once the waiter has been signalled.
    pub fn asleep(&self) -> Option<u32> {
        // Acquire: partner of the Release in `mark`.
        let before = self.state.fetch_or(ASLEEP, order!(Acquire, "waiter-park-acquire"));
        (before & SIGNALLED == 0).then_some(before | ASLEEP)
    }

    /// The word to sleep on.
    pub fn word(&self) -> &AtomicU32 {
        &self.state
    }

    /// The owner gives up; returns whether it did so before a signal. Then it has to remove its
    /// record from the chain. Otherwise the waiter has been signalled.
    pub(super) fn leave(&self) -> bool {
        // Relaxed: only the order of this and the *or* in `claim` matters, and they are of one
        // word.
        if self.state.fetch_or(LEAVING, Ordering::Relaxed) & CLAIMED == 0 {
            return true;
        }
        self.park(None); // The signaller is between two steps: until the mark the record is not ours.
        false
    }

    /// Whether the owner has given up. The chain is locked.
    pub(super) fn is_leaving(&self) -> bool {
        self.state.load(Ordering::Relaxed) & LEAVING != 0 // Relaxed: as in `leave`
    }

    /// Chooses this waiter for a signal; false if it is leaving. The chain is locked.
    pub(super) fn claim(&self) -> bool {
        // Relaxed: as in `leave`.
        self.state.fetch_or(CLAIMED, Ordering::Relaxed) & LEAVING == 0
    }

    /// Gives a claimed waiter back to its owner, with a message. The owner's record may be gone
    /// before this returns.
    ///
    /// # Safety
    ///
    /// The caller has claimed the waiter and removed it from the chain, has unlocked the chain, and
    /// does not access the waiter again.
    pub(super) unsafe fn mark(waiter: *const Waiter, message: u32) {
        // SAFETY: the waiter is claimed (contract of this function), so that its owner waits for
        // the mark: the record is there until the *or* has taken effect. After it only the address
        // is used.
        let state = unsafe { &(*waiter).state };
        let address = core::ptr::from_ref(state);
        let mark = SIGNALLED | (message * MESSAGE);
        // Release: partner of the Acquire in `asleep`.
        if state.fetch_or(mark, order!(Release, "waiter-mark-release")) & ASLEEP != 0 {
            futex::wake(address, 1);
        }
    }

    /// Wakes the next of the waiters that a [broadcast](super::WaitQueue::broadcast) is to wake. To
    /// be called once this one has been signalled or withdrawn. Without effect if the signal was no
    /// broadcast, if there was no signal, and the second time.
    ///
    /// # Safety
    ///
    /// The caller is the owner, and the waiter is on no queue any more: it was signalled or
    /// withdrawn.
    pub unsafe fn wake_next(&self) {
        if mutation!("waiter-forgets-next") {
            return;
        }
        let next = chain::take_next(self);
        if !next.is_null() {
            // SAFETY: claimed and taken off by the broadcast, and this thread's since the mark of
            // its own waiter.
            unsafe { Self::mark(next, 0) };
        }
    }

    /// The signaller's message. The waiter has been signalled.
    pub fn message(&self) -> u32 {
        self.state.load(Ordering::Relaxed) / MESSAGE // Relaxed: `asleep` has seen the mark, and no thread writes any more
    }
}

impl Default for Waiter {
    fn default() -> Self {
        Self::new()
    }
}

mortal!(Waiter { state, next, prev });

//! Locks that a program makes of a mutex and a condition variable: the difference between them and
//! queues, barriers and timers.
//!
//! A thread that has waited for a condition variable is *let in*. A lock's waiter is let in, comes
//! back to the mutex once and wakes the next waiter: it *hands over*. A thread that waits for work
//! is let in, and comes back to wait for more.
//!
//! Relaxed throughout: counters are independent of each other.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The number of mutexes of a thread for which the way it was let in is recorded.
pub const ENTRIES: usize = 4;
/// The number of places at which a thread has waited with a mutex.
pub const PLACES: usize = 3;
/// A value of [`HandOvers::waker`]: a thread whose wait is sampled requests the place of its waker.
pub const WANTED: u32 = 1 << 31;
/// A flag in a holder of `Blocked`: the value is the number of a stack, not an address.
pub const BY_STACK: u64 = 1 << 63;

/// What was seen of a condition variable.
#[repr(C)]
pub struct HandOvers {
    /// How often a let-in thread woke others when it came back to the mutex.
    pub handed: AtomicU32,
    /// How often it came back to wait again.
    pub returned: AtomicU32,
    /// Waits that continued with another one, before the thread had released the mutex.
    pub resumed: AtomicU64,
    /// The return address of the latest wait.
    pub site: AtomicU64,
    /// The record of the mutex with which threads wait for it.
    pub mutex: AtomicU32,
    /// The stack of the latest thread that woke a waiter, by number; or [`WANTED`].
    pub waker: AtomicU32,
    /// The place where that thread had waited itself; 0 if it had not waited.
    pub waker_site: AtomicU64,
    /// The number of hand-overs by threads that had been let in by a thread that had waited at the
    /// same place.
    pub alike: AtomicU32,
    /// The same, by threads that wait in another place.
    pub unlike: AtomicU32,
}

/// How a thread was let in.
#[repr(C)]
pub struct Entry {
    /// The mutex's record; 0 for none.
    pub mutex: AtomicU32,
    /// The condition variable's record.
    pub condition: AtomicU32,
    /// The thread's acquisitions of the mutex until then.
    pub acquired: AtomicU64,
    /// When that was, in ticks.
    pub since: AtomicU64,
    /// The return address of the wait.
    pub site: AtomicU64,
    /// The place where the thread that ended the wait had waited itself; 0 if that is not known.
    pub waker_site: AtomicU64,
    /// The places where the thread waited with the mutex, the latest new one first.
    pub sites: [AtomicU64; PLACES],
    /// The mutex that they are of.
    pub sites_of: AtomicU32,
    pub(super) _spare: AtomicU32,
}

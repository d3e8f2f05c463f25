//! What a domain knows about a thread: its session, its transaction, and what it has committed.

use alloc::boxed::Box;
use core::ptr::null_mut;

use super::log::{Limbo, Log};
use super::stats::Counters;
use crate::clock::{Decision, UNDECIDED};
use crate::session::pool::Pool;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::sync::{CachePadded, order};

/// What a record says of its thread's session.
///
/// | | |
/// |---|---|
/// | a time | one that sees the commits up to it |
/// | [`UNTIMED`](Self::UNTIMED) and a number | one that has no time, or not yet: the number tells it from the thread's others |
/// | [`NONE`](Self::NONE) | there is none |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Session(u64);

impl Session {
    pub const NONE: Self = Self(u64::MAX);
    const UNTIMED: u64 = UNDECIDED;

    #[inline]
    pub fn untimed(number: u64) -> Self {
        Self(Self::UNTIMED | number)
    }

    #[inline]
    pub fn at(time: u64) -> Self {
        Self(time)
    }

    /// Whether it may be one that does not see a commit of this stamp.
    pub fn may_miss(self, stamp: u64) -> bool {
        self != Self::NONE && (self.0 >= Self::UNTIMED || self.0 < stamp)
    }

    /// Whether the session that was `before`, and may miss a commit of this stamp, still lasts if this is what its record
    /// says now. A session that is later has another number, or has begun at the stamp or after it.
    pub fn is_still(self, before: Self, stamp: u64) -> bool {
        self == before || self.0 < stamp.min(Self::UNTIMED)
    }
}

/// A thread's record. It outlives the thread, and is then another's.
pub(super) struct Record {
    session: CachePadded<AtomicU64>,
    pub decision: Decision,
    pub log: Log,
    pub counters: Counters,
    /// The number of the thread: for reports, and to find out that a thread would wait for itself.
    pub thread: AtomicU32,
    taken: AtomicBool,
    /// What its thread has for itself, while no thread has it.
    local: AtomicPtr<Local>,
    /// The record that was made before.
    pub next: *mut Record,
}

// SAFETY: the link is written before the record is shared; the rest says for itself.
unsafe impl Sync for Record {}

/// What a thread has for itself.
pub(super) struct Local {
    pub pool: Pool,
    pub limbo: Limbo,
    /// How many sessions it has begun.
    pub sessions: u64,
}

impl Record {
    /// Taken by the calling thread.
    pub fn new() -> (Self, Box<Local>) {
        let record = Self {
            session: CachePadded(AtomicU64::new(Session::NONE.0)),
            decision: Decision::new(),
            log: Log::new(),
            counters: Counters::default(),
            thread: AtomicU32::new(0),
            taken: AtomicBool::new(true),
            local: AtomicPtr::new(null_mut()),
            next: null_mut(),
        };
        (record, Box::new(Local { pool: Pool::new(), limbo: Limbo::default(), sessions: 0 }))
    }

    /// Takes a record that no thread has.
    pub fn take(&self) -> Option<Box<Local>> {
        // Relaxed: a hint, and on failure.
        let taken = self.taken.load(Ordering::Relaxed);
        // Acquire: partner of the Release in `give_back`.
        let done = Ordering::Acquire;
        if taken || self.taken.compare_exchange(false, true, done, Ordering::Relaxed).is_err() {
            return None;
        }
        let local = self.local.swap(null_mut(), Ordering::Relaxed); // Relaxed: the record is this thread's
        // SAFETY: from `give_back`.
        Some(unsafe { Box::from_raw(local) })
    }

    pub fn give_back(&self, local: Box<Local>) {
        self.local.store(Box::into_raw(local), Ordering::Relaxed); // Relaxed: released below
        // Release: partner of the Acquire in `take`.
        self.taken.store(false, order!(Release, "rlu-record-give"));
    }

    /// Says what session there is. If it begins, a barrier has to follow.
    #[inline]
    pub fn set_session(&self, session: Session) {
        // Release: partner of the Acquire in `session`: what the last session has read, it has read before.
        self.session.store(session.0, order!(Release, "rlu-set-session"));
    }

    pub fn session(&self) -> Session {
        // Acquire: partner of the Release in `set_session`.
        Session(self.session.load(order!(Acquire, "rlu-session")))
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let local = self.local.load(Ordering::Relaxed); // Relaxed: nobody else is left
        if !local.is_null() {
            // SAFETY: from `give_back`, and not taken since.
            drop(unsafe { Box::from_raw(local) });
        }
    }
}

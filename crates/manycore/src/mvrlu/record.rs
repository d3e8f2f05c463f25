//! What a domain knows about a thread: since when it is in a session, and whether its transaction has committed.

use core::ptr::null_mut;

use alloc::boxed::Box;

use super::log::{Log, Writer};
use super::stats::Counters;
use crate::clock::Decision;
use crate::session::pool::Pool;
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::sync::{CachePadded, order};

/// In no session.
const IDLE: u64 = u64::MAX;

/// A thread's record. It outlives the thread, and is then another's.
pub(super) struct Record {
    /// In a session: an epoch that had been announced when the session began. Else `IDLE`.
    session: CachePadded<AtomicU64>,
    pub decision: Decision,
    pub log: Log,
    pub counters: Counters,
    /// The watermark up to which the log was last reclaimed.
    pub reclaimed: AtomicU64,
    /// The number of the thread, for reports.
    pub thread: AtomicU32,
    taken: AtomicBool,
    /// What its thread has for itself, while no thread has it.
    local: AtomicPtr<Local>,
    /// The record that was made before.
    pub next: *mut Record,
}

// SAFETY: the link is written before the record is shared; the rest says for itself.
unsafe impl Sync for Record {}

/// What a thread needs to write.
pub(super) struct Local {
    pub writer: Writer,
    pub pool: Pool,
}

impl Record {
    /// Taken by the calling thread.
    pub fn new(segment_bytes: usize, segments: usize) -> (Self, Box<Local>) {
        let (log, writer) = Log::new(segment_bytes, segments);
        let record = Self {
            session: CachePadded(AtomicU64::new(IDLE)),
            decision: Decision::new(),
            log,
            counters: Counters::default(),
            reclaimed: AtomicU64::new(0),
            thread: AtomicU32::new(0),
            taken: AtomicBool::new(true),
            local: AtomicPtr::new(null_mut()),
            next: null_mut(),
        };
        (record, Box::new(Local { writer, pool: Pool::new() }))
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
        self.taken.store(false, order!(Release, "mvrlu-record-give"));
    }

    /// Says that a session begins, which is protected from that epoch on. A barrier has to follow.
    #[inline]
    pub fn enter(&self, epoch: u64) {
        // Release: partner of the Acquire in `session_since`, in case that it finds this rather than what `leave` wrote before.
        self.session.store(epoch, Ordering::Release);
    }

    #[inline]
    pub fn leave(&self) {
        // Release: partner of the Acquire in `session_since`: what the session has read, it has read before.
        self.session.store(IDLE, order!(Release, "mvrlu-leave"));
    }

    /// The epoch of the session; later than any if there is none.
    pub fn session_since(&self) -> u64 {
        // Acquire: partner of the Release in `enter` and `leave`.
        self.session.load(Ordering::Acquire)
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

//! A domain's data about a thread: the begin of its session, and whether its transaction has
//! committed.

use alloc::vec::Vec;
use core::cell::Cell;

use super::log::{Log, Writer};
use super::object::{Dying, Head, Kind, Version};
use super::stats::{Counters, count};
use super::waits::Account;
use crate::clock::Decision;
use crate::session::pool::Pool;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{CachePadded, order, store_and_fence};
use crate::thread_registry::ThreadSlot;

/// In no session.
const IDLE: u64 = u64::MAX;

/// A thread that takes part.
pub(super) type Member = ThreadSlot<Record, Local>;

/// A thread's record. It outlives the thread, and a later thread takes it over.
#[repr(C)] // The session comes first: see `ThreadRegistry::scan`.
pub(super) struct Record {
    /// In a session, an epoch that had been announced when the session began. Otherwise `IDLE`.
    session: CachePadded<AtomicU64>,
    pub decision: Decision,
    pub log: Log,
    pub counters: Counters,
    /// The watermark up to which the log was last reclaimed.
    pub reclaimed: AtomicU64,
}

/// What a thread needs to write.
pub(super) struct Local {
    pub writer: Writer,
    pub pool: Pool,
    pub kept: Kept,
    /// Unused objects whose values have to be dropped.
    pub dying: Dying,
}

/// The state of a handle at its end, with which the next handle begins. So a series of handles
/// searches for grace periods as often as a single one, and need not allocate.
#[derive(Default)]
pub(super) struct Kept {
    /// The session's locked objects. Between handles it is empty, but keeps its memory.
    pub locked: Vec<*mut Version>,
    /// What the session has made. Emptied as `locked` is.
    pub fresh: Vec<(*mut Head, &'static Kind)>,
    pub account: Account,
    /// Steps over versions since the last grace period.
    pub hops: Cell<u32>,
    /// How many of `hops` are in the domain's counts already.
    hops_counted: u32,
    /// Versions that were committed since the log was last reclaimed, or since the last search for
    /// a grace period.
    pub versions: u32,
    /// Whether there are many of these versions, or a segment of the log was begun although there
    /// are many segments.
    pub is_filling: bool,
    /// Sessions since it last looked for a grace period.
    pub sessions: u32,
    /// How often, since the last grace period ended, one was due and this thread left it to another
    /// thread.
    pub deferred: u32,
    /// The watermark when the log was last reclaimed.
    pub reclaimed: u64,
}

impl Kept {
    /// Brings the domain's count of hops up to date.
    pub fn count_hops(&mut self, counters: &Counters) {
        let hops = self.hops.get();
        count(&counters.hops, u64::from(hops.saturating_sub(self.hops_counted)));
        self.hops_counted = hops;
    }

    /// Returns the steps since the last grace period, and counts them. The next call counts those
    /// since this one.
    pub fn take_hops(&mut self, counters: &Counters) -> u32 {
        self.count_hops(counters);
        self.hops_counted = 0;
        self.hops.take()
    }
}

impl Record {
    pub fn new(segment_bytes: usize, segments: usize) -> (Self, Local) {
        let (log, writer) = Log::new(segment_bytes, segments);
        let record = Self {
            session: CachePadded(AtomicU64::new(IDLE)),
            decision: Decision::new(),
            log,
            counters: Counters::default(),
            reclaimed: AtomicU64::new(0),
        };
        (record, Local { writer, pool: Pool::new(), kept: Kept::default(), dying: Dying::new() })
    }

    /// Announces that a session begins, which is protected from this epoch on; with a full fence
    /// afterwards, or without.
    #[inline]
    pub fn enter(&self, epoch: u64, with_fence: bool) {
        if with_fence {
            store_and_fence!(self.session, epoch, "mvrlu-enter-fence");
        } else {
            // Release: partner of the Acquire in `session_since`, in case that it finds this value
            // rather than the earlier one of `leave`.
            self.session.store(epoch, Ordering::Release);
        }
    }

    #[inline]
    pub fn leave(&self) {
        // Release: partner of the Acquire in `session_since`: the session's reads come before.
        self.session.store(IDLE, order!(Release, "mvrlu-leave"));
    }

    /// The epoch of the session; later than any epoch if there is none.
    pub fn session_since(&self) -> u64 {
        // Acquire: partner of the Release in `enter` and `leave`.
        self.session.load(Ordering::Acquire)
    }
}

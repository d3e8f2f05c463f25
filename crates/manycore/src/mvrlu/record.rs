//! What a domain knows about a thread: since when it is in a session, and whether its transaction has committed.

use alloc::vec::Vec;

use super::log::{Log, Writer};
use super::object::{Head, Kind, Version};
use super::stats::Counters;
use super::waits::Account;
use crate::clock::Decision;
use crate::session::pool::Pool;
use crate::session::seat::Seat;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{CachePadded, order, store_and_fence};

/// In no session.
const IDLE: u64 = u64::MAX;

/// A thread that takes part.
pub(super) type Member = Seat<Record, Local>;

/// A thread's record. It outlives the thread, and is then another's.
#[repr(C)] // The session comes first: see `Seats::scan`.
pub(super) struct Record {
    /// In a session: an epoch that had been announced when the session began. Else `IDLE`.
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
}

/// What a handle has at its end, and the next one begins with: so many handles, one after the other, look for grace periods as often as
/// one that stays, and need not allocate.
#[derive(Default)]
pub(super) struct Kept {
    /// Empty, with the memory that they have come to.
    pub locked: Vec<*mut Version>,
    pub fresh: Vec<(*mut Head, &'static Kind)>,
    pub account: Account,
    pub hops: u32,
    pub versions: u32,
    pub is_filling: bool,
    pub sessions: u32,
    pub deferred: u32,
    pub reclaimed: u64,
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
        (record, Local { writer, pool: Pool::new(), kept: Kept::default() })
    }

    /// Says that a session begins, which is protected from that epoch on; with a full fence after it, or without.
    #[inline]
    pub fn enter(&self, epoch: u64, with_fence: bool) {
        if with_fence {
            store_and_fence!(self.session, epoch, "mvrlu-enter-fence");
        } else {
            // Release: partner of the Acquire in `session_since`, in case that it finds this rather than what `leave` wrote before.
            self.session.store(epoch, Ordering::Release);
        }
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

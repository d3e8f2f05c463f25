//! A domain's data about a thread: its session, its transaction, and its commits.

pub(super) mod log;
pub(super) mod object;

use alloc::vec::Vec;

use self::log::{Limbo, Log};
use self::object::{Dying, Head, Header, Kind};
use super::stats::Counters;
use crate::clock::{Decision, UNDECIDED};
use crate::session::pool::Pool;
use crate::sync::atomic::AtomicU64;
use crate::sync::{CachePadded, order};
use crate::thread_registry::ThreadSlot;

/// What a record says of its thread's session.
///
/// | | |
/// |---|---|
/// | an epoch | one that sees the commits up to it |
/// | [`UNTIMED`](Self::UNTIMED) and a number | none: the number tells it from the others |
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
    pub fn since(epoch: u64) -> Self {
        Self(epoch)
    }

    /// Whether it may be one that does not see a commit of this stamp.
    pub fn may_miss(self, stamp: u64) -> bool {
        self != Self::NONE && (self.0 >= Self::UNTIMED || self.0 < stamp)
    }

    /// Whether an earlier session, which may miss a commit of this stamp, is still open, given its
    /// record's present contents. A later session has another number, or else soon an epoch that is
    /// not before the stamp.
    pub fn is_still(self, before: Self, stamp: u64) -> bool {
        self == before || self.0 < stamp.min(Self::UNTIMED)
    }
}

/// A thread that takes part.
pub(super) type Member = ThreadSlot<Record, Local>;

/// A thread's record. It outlives the thread, and a later thread takes it over.
#[repr(C)] // The session comes first: see `ThreadRegistry::scan`.
pub(super) struct Record {
    session: CachePadded<AtomicU64>,
    pub decision: Decision,
    /// The latest stamp that the thread has given or seen, where the clock is not exact.
    pub known: AtomicU64,
    pub log: Log,
    pub counters: Counters,
}

/// What a thread has for itself.
pub(super) struct Local {
    pub pool: Pool,
    pub limbo: Limbo,
    /// Unused objects whose values have to be dropped.
    pub dying: Dying,
    /// A handle's empty vector for its locked and new objects, so that the next handle need not
    /// allocate one.
    pub locked: Vec<*mut Header>,
    pub fresh: Vec<(*mut Head, &'static Kind)>,
    /// How many sessions it has begun.
    pub sessions: u64,
}

impl Record {
    pub fn new() -> (Self, Local) {
        let record = Self {
            session: CachePadded(AtomicU64::new(Session::NONE.0)),
            decision: Decision::new(),
            known: AtomicU64::new(0),
            log: Log::new(),
            counters: Counters::default(),
        };
        let (locked, fresh) = (Vec::with_capacity(16), Vec::with_capacity(16));
        let (pool, limbo, dying) = (Pool::new(), Limbo::default(), Dying::new());
        let local = Local { pool, limbo, dying, locked, fresh, sessions: 0 };
        (record, local)
    }

    /// Announces the session's state. If a session begins, the caller has to execute a barrier
    /// afterwards.
    #[inline]
    pub fn set_session(&self, session: Session) {
        // Release: partner of the Acquire in `session`: the last session's reads come before.
        self.session.store(session.0, order!(Release, "rlu-set-session"));
    }

    pub fn session(&self) -> Session {
        // Acquire: partner of the Release in `set_session`.
        Session(self.session.load(order!(Acquire, "rlu-session")))
    }
}

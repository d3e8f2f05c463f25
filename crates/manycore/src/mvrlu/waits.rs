//! Whether commits or snapshots wait for the clocks.
//!
//! A stamp is a little ahead of the clocks, so that it is later than the begin of every snapshot
//! that has missed the commit. To keep later snapshots from missing it, too, one side has to wait
//! that long: the commit, until every clock has passed its stamp, or each new snapshot, until it is
//! later than every earlier stamp. A thread that reads and changes one key at a time needs no
//! snapshots, and then commits need not wait; where snapshots dominate, snapshots should not wait.
//! So threads count both, and a domain decides by the more frequent kind.
//!
//! ```text
//!                 snapshots wait  -------->  both wait  -------->  commits wait
//!                        ^        many snapshots  a grace period        |
//!                        +----------------------------------------------+
//!                                         many commits
//! ```
//!
//! A session reads which of them wait when it begins. Let a commit C have returned before a
//! snapshot S begins. If C waited, or S does, S sees it. If neither does, C has found the state on
//! the left, and S the one on the right, later. Between them lies a grace period: all sessions had
//! ended that began with the state on the left, C's among them. So a thread that ended it took a
//! time that is not before C's stamp, and waited until all clocks had passed that.
//!
//! The same holds for a commit that a session has only *seen*: S may begin because the session
//! announced it. In the argument, that session takes the place of C.

use core::cell::Cell;

use crate::clock::Clock;
use crate::sync::CachePadded;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Which of them wait, as a session has found it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting(u64);

impl Waiting {
    pub const SNAPSHOTS: Self = Self(0);
    /// Both wait, from a moment on that has no stamp yet; and then both, with the stamp of that
    /// moment.
    const BOTH: Self = Self(1);
    const COMMITS: Self = Self(u64::MAX);

    #[inline]
    pub fn has_commits(self) -> bool {
        self != Self::SNAPSHOTS
    }

    #[inline]
    pub fn has_snapshots(self) -> bool {
        self != Self::COMMITS
    }
}

/// For all threads of a domain.
pub(super) struct ClockWaitPolicy {
    /// A [`Waiting`].
    waiting: AtomicU64,
    /// How many more snapshots than commits there were lately: a number with a sign.
    balance: CachePadded<AtomicU64>,
}

/// A thread's own count that is not yet added to the total: snapshots, less commits.
#[derive(Default)]
pub(super) struct Account(Cell<i32>);

impl Account {
    /// Counts a wait; returns whether it is time to tell the other threads.
    #[inline]
    pub fn count(&self, more: i32, most: u32) -> bool {
        let balance = self.0.get().saturating_add(more);
        self.0.set(balance);
        balance.unsigned_abs() > most
    }
}

impl ClockWaitPolicy {
    pub fn new() -> Self {
        Self {
            waiting: AtomicU64::new(Waiting::SNAPSHOTS.0),
            balance: CachePadded(AtomicU64::new(0)),
        }
    }

    #[inline]
    pub fn waiting(&self) -> Waiting {
        // Acquire: partner of the Release in `only_commits`: the clocks' times there are in the
        // past of this thread's clock now.
        Waiting(self.waiting.load(Ordering::Acquire))
    }

    /// Adds a thread's count. From an excess of `hysteresis` on, the other kind waits.
    pub fn tell(&self, account: &Account, hysteresis: u32, clock: &impl Clock) {
        let most = i64::from(hysteresis);
        let more = i64::from(account.0.take());
        // Relaxed, both: some counts may be lost between them.
        let before = self.balance.load(Ordering::Relaxed).cast_signed();
        let balance = (before + more).clamp(-most, most);
        self.balance.store(balance.cast_unsigned(), Ordering::Relaxed);
        match self.waiting() {
            Waiting::SNAPSHOTS if balance >= most => self.both(clock),
            Waiting::COMMITS if balance <= -most => self.only_snapshots(),
            _ => {}
        }
    }

    fn only_snapshots(&self) {
        // Relaxed: commits have waited for all earlier stamps before this is seen. A
        // compare-and-swap, because other threads may have gone on to `BOTH` meanwhile. If a store
        // overwrote that, a commit could find this value instead, and would not be among those for
        // which the grace period waits.
        let (from, to, relaxed) = (Waiting::COMMITS.0, Waiting::SNAPSHOTS.0, Ordering::Relaxed);
        let _ = self.waiting.compare_exchange(from, to, relaxed, relaxed);
    }

    fn both(&self, clock: &impl Clock) {
        let (from, to) = (Waiting::SNAPSHOTS.0, Waiting::BOTH.0);
        // AcqRel: partner of the Acquire in `waiting`; the stamp is taken later, so sessions with
        // an epoch that is not before it find this. Relaxed on failure: another thread does it.
        if self.waiting.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            // Release: partner of the Acquire in `waiting`.
            self.waiting.store(clock.stamp(), Ordering::Release);
        }
    }

    /// Since when both wait.
    pub fn both_since(&self) -> Option<u64> {
        let waiting = self.waiting();
        let is_stamp = ![Waiting::SNAPSHOTS, Waiting::BOTH, Waiting::COMMITS].contains(&waiting);
        is_stamp.then_some(waiting.0)
    }

    /// All sessions have begun since that stamp: snapshots need not wait any more.
    pub fn only_commits(&self, since: u64, clock: &impl Clock) {
        clock.settle(clock.fresh());
        // Release: partner of the Acquire in `waiting`. Relaxed on failure: another thread has done
        // it.
        let (to, release) = (Waiting::COMMITS.0, Ordering::Release);
        let _ = self.waiting.compare_exchange(since, to, release, Ordering::Relaxed);
    }
}

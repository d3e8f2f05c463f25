//! Sessions with a time and commits use this epoch, so that no clock has to be trusted.
//!
//! The *epoch* is a number that sessions with a time write into their records. It is not before any
//! announced stamp. A session reads at the clock's time or at its epoch, whichever is later. A
//! stamp is later than the epoch that its thread finds when it has locked its objects. A correct
//! clock is behind the epoch by at most its boundary, so the epoch rarely changes a session's time.
//!
//! Every commit would write the epoch's line. To avoid that, the epoch is not used before a session
//! asks for a time, which sessions of many programs never do. Until then each thread keeps the
//! latest stamp that it knows in its record.

use crate::clock::Clock;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{CachePadded, full_fence, mutation, order};

/// No session has asked for a time.
const UNUSED: u64 = 0;

pub(super) struct Epoch(CachePadded<Shared>);

struct Shared {
    latest: AtomicU64,
    /// Whether every stamp that was given while the epoch was unused is at most `latest`.
    is_ready: AtomicBool,
}

impl Epoch {
    pub fn new() -> Self {
        Self(CachePadded(Shared {
            latest: AtomicU64::new(UNUSED),
            is_ready: AtomicBool::new(false),
        }))
    }

    /// The epoch, for the record of a session with a time. `known` finds the latest stamp that any
    /// thread knows.
    #[inline]
    pub fn now(&self, known: impl FnOnce() -> u64) -> u64 {
        // Acquire: partner of the Release in `begin`.
        if !self.0.is_ready.load(Ordering::Acquire) {
            self.begin(known);
        }
        self.again()
    }

    /// What it is after a session's begin.
    #[inline]
    pub fn again(&self) -> u64 {
        // Acquire: partner of the AcqRel in `announce`.
        self.0.latest.load(Ordering::Acquire)
    }

    /// The first session with a time begins to use the epoch. Other threads may do the same
    /// meanwhile.
    #[cold]
    fn begin(&self, known: impl FnOnce() -> u64) {
        // AcqRel: partner of each other, and of the Acquire in `again`.
        self.0.latest.fetch_max(UNUSED + 1, Ordering::AcqRel);
        // A thread that found the epoch unused executed its own fence before this one, in
        // `announce`. So this thread sees that thread's announcement.
        full_fence!("rlu-begin-fence");
        // AcqRel: partner of those in `announce`, and of the Acquire in `again`.
        self.0.latest.fetch_max(known(), Ordering::AcqRel);
        // Release: partner of the Acquire in `now`.
        self.0.is_ready.store(true, order!(Release, "rlu-epoch-ready"));
    }

    /// A stamp that is later than this time. Every session whose epoch is not before the stamp sees
    /// the thread's writes.
    pub fn stamp(&self, clock: &impl Clock, after: u64) -> u64 {
        full_fence!("rlu-stamp-fence");
        // Relaxed: a thread that has found a later epoch executes a fence after that, and before it
        // reads objects.
        let epoch = self.0.latest.load(Ordering::Relaxed);
        let epoch = if mutation!("rlu-trusts-clocks") { UNUSED } else { epoch };
        clock.stamp().max(epoch.max(after) + 1)
    }

    /// Ensures that every session with a time that begins from now on sees a commit of this stamp.
    /// The thread has the stamp in its record.
    #[inline]
    pub fn announce(&self, stamp: u64) {
        full_fence!("rlu-known-fence"); // partner of the one in `begin`
        // Relaxed: only whether it is used, and later.
        let latest = self.0.latest.load(Ordering::Relaxed);
        if latest != UNUSED && latest < stamp && !mutation!("rlu-unannounced") {
            // AcqRel: partner of the Acquire in `again`, and of each other.
            self.0.latest.fetch_max(stamp, Ordering::AcqRel);
        }
    }
}

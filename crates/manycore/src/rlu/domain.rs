//! A domain: the participating threads, and the clock that they use.

use super::config::Config;
use super::epoch::Epoch;
use super::record::object::Dying;
use super::record::{Local, Record};
use super::stats::Stats;
use crate::clock::{Clock, Counter};
use crate::session::pool::SharedPool;
use crate::sync::atomic::Ordering;
use crate::sync::{barrier, full_fence};
use crate::thread_registry::ThreadRegistry;

/// Objects that threads share, and the threads.
///
/// The domain owns all memory, and frees it when it is dropped.
pub struct Domain<C: Clock = Counter> {
    clock: C,
    /// Not used where the clock is exact.
    epoch: Epoch,
    pub(super) config: Config,
    /// This field is before the shared pool, because it is dropped first: its objects are in the
    /// pool's memory.
    pub(super) members: ThreadRegistry<Record, Local>,
    pub(super) shared_pool: SharedPool,
    /// Whether threads begin sessions without a fence.
    asymmetric: bool,
}

/// An asymmetric barrier costs a writer as much as some hundred fences cost readers. So it is used
/// where at least this many commits share one barrier.
const COMMITS_A_BARRIER: usize = 8;

impl<C: Clock + Default> Default for Domain<C> {
    fn default() -> Self {
        Self::new(C::default(), Config::default())
    }
}

impl<C: Clock + Default> Domain<C> {
    /// A domain whose threads write back after every eleventh commit: they defer ten commits, as in
    /// the paper.
    #[must_use]
    pub fn deferring() -> Self {
        Self::new(C::default(), Config::default().with_deferred(10))
    }
}

impl<C: Clock> Domain<C> {
    /// Creates one with a clock and parameters.
    pub fn new(clock: C, config: Config) -> Self {
        let asymmetric = config.deferred >= COMMITS_A_BARRIER && barrier::is_asymmetric();
        let (shared_pool, members) = (SharedPool::new(), ThreadRegistry::new());
        Self { clock, epoch: Epoch::new(), config, shared_pool, members, asymmetric }
    }

    /// The time that a session writes into its record when it begins. A thread that reads the time
    /// and then passes a fence sees all that was written before any stamp up to it.
    #[inline]
    pub(super) fn epoch(&self) -> u64 {
        if self.clock.is_exact() {
            return self.clock.present();
        }
        self.epoch.now(|| {
            // Relaxed: after a fence.
            let known = self.members.iter().map(|member| member.known.load(Ordering::Relaxed));
            known.max().unwrap_or(0)
        })
    }

    /// The time of a session that has left this epoch in its record, and passed a fence.
    #[inline]
    pub(super) fn time(&self, epoch: u64) -> u64 {
        let now = self.clock.present();
        if self.clock.is_exact() {
            return now;
        }
        let latest = self.epoch.again();
        if latest != epoch {
            self.fence_reader(); // as after the epoch that was left in the record
        }
        now.max(latest)
    }

    /// A stamp that is later than this time.
    pub(super) fn stamp(&self, after: u64) -> u64 {
        if self.clock.is_exact() {
            return self.clock.stamp();
        }
        self.epoch.stamp(&self.clock, after)
    }

    /// Ensures that every session with a time that begins from now on sees a commit of this stamp.
    /// The record is the calling thread's.
    pub(super) fn announce(&self, record: &Record, stamp: u64) {
        if !self.clock.is_exact() {
            record.known.store(stamp, Ordering::Relaxed); // Relaxed: a fence follows
            self.epoch.announce(stamp);
        }
    }

    /// Executes the fence between a session's begin, which its record announces, and the session's
    /// reads.
    #[inline]
    pub(super) fn fence_reader(&self) {
        if self.asymmetric {
            barrier::light();
        } else {
            full_fence!("rlu-reader-fence");
        }
    }

    /// Between a thread's writes, and its reads of records.
    pub(super) fn fence_readers(&self) {
        full_fence!("rlu-writer-fence");
        if self.asymmetric {
            barrier::heavy();
        }
    }

    /// What has been done so far, by all threads.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.members.iter().for_each(|member| member.counters.add_to(&mut stats));
        stats
    }

    /// The bytes of the domain's memory for objects and copies, whether in use or free.
    pub fn object_bytes(&self) -> usize {
        self.shared_pool.bytes()
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }
}

impl<C: Clock> Drop for Domain<C> {
    /// Drops the values of objects that were freed, where that was deferred.
    fn drop(&mut self) {
        let mut dying = Dying::new();
        // SAFETY: the domain ends, so that no handle is left that would use a log.
        self.members.iter().for_each(|member| unsafe { member.log.take_freed(&mut dying) });
    }
}

impl<C: Clock> core::fmt::Debug for Domain<C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Domain").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

//! A domain: the participating threads, the clock that they use, and their grace periods.

use core::time::Duration;

use super::config::{Config, Stall};
use super::object::Dying;
use super::record::{Local, Member, Record};
use super::stats::Stats;
use super::waits::{Account, ClockWaitPolicy, Waiting};
use crate::asymmetry::Asymmetry;
use crate::clock::{Clock, Ordo};
use crate::session::pool::SharedPool;
use crate::session::retry_queue::RetryQueues;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{CachePadded, full_fence, mutation};
use crate::thread_registry::ThreadRegistry;

/// Objects that threads share, and the threads.
///
/// All memory belongs to the domain, and is freed when the domain is dropped.
pub struct Domain<C: Clock = Ordo> {
    pub(super) clock: C,
    pub(super) config: Config,
    /// Before the shared pool, because it is dropped first: its objects are in the shared pool's
    /// memory.
    pub(super) members: ThreadRegistry<Record, Local>,
    pub(super) shared_pool: SharedPool,
    periods: CachePadded<Periods>,
    /// For sessions after a conflict.
    pub(super) retry_queues: RetryQueues,
    /// The time until which no thread searches for a grace period, by the clock; or [`NO_THREAD`],
    /// or [`SOME_THREAD`].
    looking: CachePadded<AtomicU64>,
    /// The watermark is never above it: see [`Domain::raise_floor`].
    floor: CachePadded<AtomicU64>,
}

/// Read at every session, written once in a grace period.
struct Periods {
    /// Every session that begins from now on, begins when every clock is past this.
    epoch: AtomicU64,
    /// Every session that is open or begins from now on, has begun when every clock was past this.
    watermark: AtomicU64,
    asymmetry: Asymmetry,
    waits: ClockWaitPolicy,
}

/// No thread reads at the floor.
const NO_FLOOR: u64 = u64::MAX;

/// No thread searches for a grace period, and each may.
const NO_THREAD: u64 = 0;
/// A thread does.
const SOME_THREAD: u64 = u64::MAX;

/// Each search writes the line that every session reads. For each group of this many threads,
/// searches pause for the duration of a scan: otherwise hundreds of threads would search all the
/// time, and that line would always be in transit.
const THREADS_FOR_REST: u64 = 64;

/// The factor for these limits where scans are expensive.
const VERSIONS_FOR_DEAR: u32 = 4;
const HOPS_FOR_DEAR: u32 = 16;

/// What a scan has found.
struct EpochScan {
    watermark: u64,
    /// When it began.
    epoch: u64,
    /// How many there are.
    threads: u64,
}

impl<C: Clock + Default> Default for Domain<C> {
    fn default() -> Self {
        Self::new(C::default(), Config::default())
    }
}

impl<C: Clock> Domain<C> {
    /// Creates one with a clock and limits.
    ///
    /// # Panics
    ///
    /// If the limits contradict each other: see [`Config`].
    pub fn new(clock: C, config: Config) -> Self {
        Self::with_parts(clock, config, SharedPool::new(), NO_FLOOR)
    }

    pub(super) fn with_parts(
        clock: C,
        config: Config,
        shared_pool: SharedPool,
        floor: u64,
    ) -> Self {
        config.check();
        let epoch = AtomicU64::new(clock.horizon());
        Self {
            clock,
            config,
            shared_pool,
            periods: CachePadded(Periods {
                epoch,
                watermark: AtomicU64::new(0),
                asymmetry: Asymmetry::new(true),
                waits: ClockWaitPolicy::new(),
            }),
            retry_queues: RetryQueues::new(),
            members: ThreadRegistry::new(),
            looking: CachePadded(AtomicU64::new(NO_THREAD)),
            floor: CachePadded(AtomicU64::new(floor)),
        }
    }

    /// Announces that the record's thread begins a session; returns the session's epoch.
    #[inline]
    pub(super) fn enter(&self, record: &Record) -> u64 {
        // Acquire: partner of the Release in `advance`: the session does not find versions that
        // were detached before that epoch.
        let epoch = self.periods.epoch.load(Ordering::Acquire);
        self.periods.asymmetry.announce(|with_fence| record.enter(epoch, with_fence));
        // SeqCst: partner of `stamp` and `advance`. If a thread has not seen this session enter, it
        // has announced its epoch before, and assumes that the session begins at that epoch or
        // later.
        self.periods.epoch.load(Ordering::SeqCst)
    }

    /// As [`enter`](Self::enter), for a session that reads at the floor, which is returned. The
    /// session is protected from the floor that it finds first, or from its epoch if that is
    /// earlier.
    pub(super) fn enter_at_floor(&self, record: &Record) -> u64 {
        // Acquire: partner of the Release in `raise_floor`: for the commits up to the floor.
        let floor = self.floor.load(Ordering::Acquire);
        // Acquire: partner of the Release in `advance`, as in `enter`.
        let epoch = self.periods.epoch.load(Ordering::Acquire).min(floor);
        self.periods.asymmetry.announce(|with_fence| record.enter(epoch, with_fence));
        // SeqCst: partner of `stamp` and `advance`, as in `enter`.
        self.periods.epoch.load(Ordering::SeqCst);
        // SeqCst: partner of `look`. A thread that has not seen this session enter has read this
        // floor or an earlier one before, and its watermark is not above it.
        let again = self.floor.load(Ordering::SeqCst);
        if mutation!("mvrlu-first-floor") { floor } else { again }
    }

    /// Sessions that begin later by [`Handle::begin_at_floor`](super::Handle::begin_at_floor) read
    /// at this time, unless it is earlier than their present time. Versions that such a session may
    /// need are kept: none is discarded, written over its object, or reused because of later
    /// commits.
    ///
    /// The caller has [closed](Self::close) that time: no further commit with a stamp up to it will
    /// appear.
    pub fn raise_floor(&self, floor: u64) {
        // Release: partner of the Acquire in `enter_at_floor`. SeqCst with `look`, see there.
        self.floor.fetch_max(floor, Ordering::SeqCst);
    }

    /// What sessions at the floor read at.
    pub fn floor(&self) -> u64 {
        // Acquire: partner of the Release in `raise_floor`.
        self.floor.load(Ordering::Acquire)
    }

    /// A stamp, which is later than the epoch: a thread that enters at this time or later, enters
    /// after this.
    #[inline]
    pub(super) fn stamp(&self) -> u64 {
        // SeqCst: partner of `enter` and `advance`; and it comes after the exchange that has put a
        // version in, or out.
        let epoch = self.periods.epoch.load(Ordering::SeqCst);
        let bound = if mutation!("mvrlu-trusts-clocks") { 0 } else { epoch + 1 };
        self.clock.stamp().max(bound)
    }

    /// A thread searches for a grace period when it has this many versions of its own.
    #[inline]
    pub(super) fn versions_max(&self) -> u32 {
        let times = if self.periods.asymmetry.is_dear() { VERSIONS_FOR_DEAR } else { 1 };
        self.config.versions_max.saturating_mul(times)
    }

    /// And at this many steps over versions.
    pub(super) fn hops_max(&self) -> u32 {
        let times = if self.periods.asymmetry.is_dear() { HOPS_FOR_DEAR } else { 1 };
        self.config.hops_max.saturating_mul(times)
    }

    /// Whether commits or snapshots wait for the clocks. Asked after `enter`.
    #[inline]
    pub(super) fn waiting(&self) -> Waiting {
        self.periods.waits.waiting()
    }

    /// Adds the counts of a thread that is in no session.
    #[cold]
    pub(super) fn account(&self, account: &Account) {
        let waits = &self.periods.waits;
        waits.tell(account, self.config.hysteresis, &self.clock);
        if let Some(since) = waits.both_since()
            && (self.advance() >= since || mutation!("mvrlu-early-switch"))
        {
            waits.only_commits(since, &self.clock);
        }
    }

    /// See [`Periods`].
    #[inline]
    pub(super) fn watermark(&self) -> u64 {
        // Acquire: partner of the Release in `advance`: for the accesses of sessions that have
        // ended.
        self.periods.watermark.load(Ordering::Acquire)
    }

    /// Scans for open sessions, and raises the watermark if the oldest ones have ended. Takes some
    /// microseconds if that needs a system call.
    #[cold]
    pub(super) fn advance(&self) -> u64 {
        self.scan(None).watermark
    }

    fn scan(&self, sessions: Option<u32>) -> EpochScan {
        let epoch = self.clock.horizon();
        // SeqCst: partner of `enter_at_floor`; before the fence.
        let floor = self.floor.load(Ordering::SeqCst);
        let floor = if mutation!("mvrlu-no-floor") { NO_FLOOR } else { floor };
        // SeqCst: partner of `enter` and `stamp`.
        self.periods.epoch.fetch_max(epoch, Ordering::SeqCst);
        full_fence!("mvrlu-advance-fence");
        self.periods.asymmetry.wait(sessions);
        let mut threads = 0;
        let sessions = self.members.scan().map(|member| {
            threads += 1;
            member.session_since()
        });
        let oldest = if mutation!("mvrlu-early-free") { None } else { sessions.min() };
        let oldest = oldest.map_or(epoch, |oldest| oldest.min(epoch)).min(floor);
        // AcqRel: partner of the Acquire in `watermark`; and of each other.
        let before = self.periods.watermark.fetch_max(oldest, Ordering::AcqRel);
        EpochScan { watermark: before.max(oldest), epoch, threads }
    }

    /// As [`advance`](Self::advance), unless another thread does it or has just done it, and this
    /// one need not as well. With hundreds of threads, those that scan at the same time would
    /// disturb each other, and all others would wait for the line that each of them writes.
    #[cold]
    pub(super) fn try_advance(&self, must: bool, sessions: u32) -> Option<u64> {
        // Relaxed, throughout: hints; `advance` does all that needs an order.
        let (order, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let state = self.looking.load(order);
        let rests = || state != NO_THREAD && (state == SOME_THREAD || self.clock.horizon() < state);
        let others =
            rests() || self.looking.compare_exchange(state, SOME_THREAD, order, failed).is_err();
        if others && !must {
            return None;
        }
        let EpochScan { watermark, epoch, threads } = self.scan(Some(sessions));
        let next = match threads / THREADS_FOR_REST {
            0 => NO_THREAD,
            times => {
                let now = self.clock.horizon();
                now.saturating_add(now.saturating_sub(epoch).saturating_mul(times))
                    .min(SOME_THREAD - 1)
            }
        };
        self.looking.store(next, order);
        Some(watermark)
    }

    /// The session that prevents the watermark from rising, if there is one, as a stall. The caller
    /// has waited for it for `blocked_for`, with `bytes` in its log.
    pub(super) fn oldest_session(&self, blocked_for: Duration, bytes: usize) -> Option<Stall> {
        let since = |member: &&Member| member.session_since();
        let oldest = self.members.iter().min_by_key(since)?;
        let (stamp, thread) = (oldest.session_since(), oldest.thread());
        (stamp < self.clock.horizon()).then_some(Stall { thread, stamp, blocked_for, bytes })
    }

    /// What has been done so far, by all threads.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.members.iter().for_each(|member| member.counters.add_to(&mut stats));
        stats
    }

    /// Bytes of memory for objects that the domain has, whether in use or free.
    pub fn object_bytes(&self) -> usize {
        self.shared_pool.bytes()
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }
}

impl<C: Clock> Drop for Domain<C> {
    /// Drops the values of objects that were freed, and are still in logs.
    fn drop(&mut self) {
        let mut dying = Dying::new();
        self.members.iter().for_each(|member| member.log.take_freed(&mut dying));
    }
}

impl<C: Clock> core::fmt::Debug for Domain<C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Domain").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

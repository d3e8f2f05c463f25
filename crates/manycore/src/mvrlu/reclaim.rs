//! Discarding old versions: each thread does it with its own log, between two sessions, and helps
//! those that do not get to it.
//!
//! A version goes in two steps. When no session can need it any more, because all of them see a
//! newer one or it is the newest and was written back to its object, it is *detached*: no session
//! that begins from then on finds it. When all sessions have ended that had begun before, its
//! memory is used again, and that of the object if the version was its end.

use core::ptr::null_mut;
use core::time::Duration;

use super::config::{DOUBLINGS_MAX, YIELDS};
use super::domain::Domain;
use super::handle::Handle;
use super::log::{BATCHES, Batch, Position, Tail};
use super::object::{Dying, Version, exchange, newest};
use super::record::{Local, Member, Record};
use super::stats::count;
use crate::clock::Clock;
use crate::session::object::{FREED, NEVER};
use crate::session::pool::Pool;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::phase::{self, Phase};
use crate::sync::{hint, thread, time};

/// The longest pause of a thread that waits for room.
const PAUSE_MAX_NS: u32 = 1_000_000;

/// After this many attempts to get room, with pauses between them, other threads' progress does not
/// make any.
const OWN_AFTER: u32 = 32;

/// How often a thread leaves a grace period that is due to another thread, which is searching for
/// one. With hundreds of threads a search takes about as long as the others need to find the next
/// one due. When they searched as well, all of them delayed each other.
const DEFERRED_MAX: u32 = 4;

/// What one turn has done.
#[derive(Default)]
struct Done {
    written_back: u64,
    superseded: u64,
    freed: u64,
}

impl<C: Clock> Handle<'_, C> {
    /// Searches for a grace period if that is due, and reclaims the log if one is over.
    #[cold]
    pub(super) fn maintain(&mut self, due: bool) {
        let before = self.domain.watermark();
        // At the floor, the watermark rises no more until that does.
        let looked = if due && before >= self.domain.floor() {
            (self.kept.is_filling, self.kept.versions) = (false, 0);
            self.kept.take_hops(&self.record.counters);
            false
        } else {
            due && self.look(before)
        };
        let watermark = self.domain.watermark();
        if watermark != self.kept.reclaimed {
            self.kept.deferred = 0;
            (self.vain, self.hops_max) = (0, self.domain.hops_max());
            (self.kept.is_filling, self.kept.versions) = (false, 0);
            self.kept.reclaimed = watermark;
            let lagging = if looked { before } else { 0 };
            phase::during(Phase::Log, || self.reclaim_logs(watermark, lagging));
        }
    }

    /// Searches for a grace period, unless another thread is doing so: its result serves all. But
    /// if that search had no result when some more versions were due, its thread may have been
    /// preempted, and this thread searches, too. Returns whether this thread has searched.
    fn look(&mut self, before: u64) -> bool {
        let counters = &self.record.counters;
        let for_readers = self.kept.take_hops(counters) >= self.hops_max;
        (self.kept.is_filling, self.kept.versions) = (false, 0);
        let Some(watermark) =
            self.domain.try_advance(self.kept.deferred >= DEFERRED_MAX, self.kept.sessions)
        else {
            self.kept.deferred += 1;
            return false;
        };
        self.kept.sessions = 0;
        count(&counters.periods, 1);
        count(&counters.periods_for_readers, u64::from(for_readers));
        if watermark == before {
            self.has_looked_in_vain();
        }
        true
    }

    /// Gives up the CPU: a session blocks the grace period, and more frequent searches do not help.
    /// With more threads than CPUs, the session's thread probably waits for a CPU. It gets this
    /// thread's, which is in no session now. So a thread is rarely preempted in a session for a
    /// whole time slice of the others.
    fn has_looked_in_vain(&mut self) {
        self.vain += 1;
        if self.vain <= YIELDS {
            hint::yield_now();
        }
        self.hops_max = self.domain.hops_max().saturating_mul(1 << self.vain.min(DOUBLINGS_MAX));
    }

    /// Writes back and discards the versions that no session needs, in the logs of all threads. If
    /// no session is open and no other thread reclaims, the objects themselves are up to date
    /// afterwards. For a thread that ends, or for the last thread of a program.
    ///
    /// # Panics
    ///
    /// If the handle is in a session: when the flush has ended, nothing would protect the objects
    /// that the session has found.
    pub fn flush(&mut self) {
        assert!(!self.is_open, "a flush in a session");
        let clock = self.domain.clock();
        // What is detached by the first is discarded by the second.
        for _ in 0..2 {
            // Then all earlier commits and detachments are in the past of every clock, and no batch
            // has to wait.
            let stamp = clock.fresh().max(clock.stamp());
            while clock.horizon() < stamp {
                hint::pause();
            }
            let watermark = self.domain.advance();
            self.kept.reclaimed = watermark;
            phase::during(Phase::Log, || self.reclaim_logs(watermark, watermark));
        }
    }

    /// Reclaims this thread's log, and the logs of others that were not even reclaimed up to
    /// `lagging`.
    fn reclaim_logs(&mut self, watermark: u64, lagging: u64) {
        // In a session, so that the objects are there that are read.
        self.domain.enter(self.record);
        let (domain, record) = (self.domain, self.record);
        if record.log.may_have_versions() {
            count(&record.counters.reclaims, 1);
            self.reclaim(record, watermark);
        }
        record.reclaimed.store(watermark, Ordering::Relaxed); // Relaxed: a hint
        if lagging > 0 {
            // Relaxed: a hint.
            let lags = |other: &&Member| other.reclaimed.load(Ordering::Relaxed) < lagging;
            for other in domain.members.iter().filter(lags) {
                if other.log.may_have_versions() {
                    count(&record.counters.helps, 1);
                    self.reclaim(other, watermark);
                }
            }
        }
        record.leave();
    }

    fn reclaim(&mut self, record: &Record, watermark: u64) {
        let mut done = Done::default();
        let domain = self.domain;
        let Local { pool, dying, .. } = self.local();
        record.log.reclaim(|tail| {
            discard(domain, record, tail, watermark, (pool, dying), &mut done);
            if tail.batches.len() < BATCHES {
                detach_all(domain, tail, watermark, &mut done);
            }
        });
        let counters = &self.record.counters;
        count(&counters.written_back, done.written_back);
        count(&counters.superseded, done.superseded);
        count(&counters.freed, done.freed);
    }

    /// Waits until the log has room again. If that takes long, reports the session for which it
    /// waits.
    #[cold]
    pub(super) fn wait_for_room(&mut self) {
        let (domain, record) = (self.domain, self.record);
        let mut attempts: u32 = 0;
        let mut pause_ns = 1000;
        let start = time::now();
        let mut reports_after = domain.config.patience;
        while self.local().writer.live(&record.log) >= domain.config.high() {
            if attempts == 0 {
                count(&record.counters.forced, 1);
            }
            attempts += 1;
            self.kept.deferred = DEFERRED_MAX; // Others may be at it: this thread waits for room.
            self.maintain(true);
            if attempts > 4 {
                hint::sleep(pause_ns);
                pause_ns = (pause_ns * 2).min(PAUSE_MAX_NS);
            }
            assert!(
                !attempts.is_multiple_of(OWN_AFTER) || !self.is_in_own_way(),
                "this thread has two handles of a domain, and would wait for its own session: end that before it commits in another"
            );
            let blocked_for = Duration::from_nanos(time::now().saturating_sub(start));
            if blocked_for > reports_after {
                self.report(blocked_for);
                reports_after = blocked_for.saturating_add(domain.config.patience);
            }
        }
    }

    /// Whether the session that keeps the watermark where it is, is this thread's, by another
    /// handle.
    fn is_in_own_way(&self) -> bool {
        self.domain
            .oldest_session(Duration::ZERO, 0)
            .is_some_and(|oldest| oldest.thread == thread::id())
    }

    fn report(&mut self, blocked_for: Duration) {
        let (domain, record) = (self.domain, self.record);
        let bytes = self.local().writer.live(&record.log) * domain.config.segment_bytes;
        if let Some(on_stall) = &domain.config.on_stall
            && let Some(stall) = domain.oldest_session(blocked_for, bytes)
        {
            on_stall(&stall);
        }
    }
}

/// The second step: no thread can use what was detached before the watermark.
fn discard<C: Clock>(
    domain: &Domain<C>,
    record: &Record,
    tail: &mut Tail,
    watermark: u64,
    (pool, dying): (&mut Pool, &mut Dying),
    done: &mut Done,
) {
    let expired = |batch: &&Batch| batch.stamp <= watermark;
    let batches = tail.batches.iter().take_while(expired).count();
    let Some(last) = batches.checked_sub(1) else { return };
    let end = tail.batches[last].end;
    tail.batches.drain(..batches);
    let mut discarded = 0;
    while tail.tail != end {
        // SAFETY: the tail is in this log, and leaves a segment when all versions in it are
        // discarded.
        let give_back = |segment| unsafe { record.log.give_back(segment) };
        let Some(version) = tail.tail.version(give_back) else {
            break;
        };
        if tail.tail == end {
            break; // at the begin of a segment
        }
        // SAFETY: the version was published, and this thread discards it by going past it below:
        // only one with the right to reclaim does so, which the caller is.
        let version = unsafe { &*version };
        // This shows the model checker that no other thread touches it now.
        #[cfg(loom)]
        // SAFETY: the batch was detached at a time up to the watermark, so that no session has the
        // version (3 on the module's page).
        unsafe {
            (version.kind.end_copy)(core::ptr::from_ref(version).cast_mut());
        }
        // Relaxed: passed on with the right to reclaim.
        if version.has(FREED) && version.stamp.load(Ordering::Relaxed) != NEVER {
            // SAFETY: the object ended with this version, which was committed; no session is open
            // that could have found it (3 on the module's page), and its end is seen once, since
            // the version is.
            unsafe { dying.end(version.master(), version.kind, pool, &domain.shared_pool) };
            done.freed += 1;
        }
        discarded += 1;
        tail.tail.advance(version.kind.room());
    }
    record.log.count_discarded(discarded);
}

/// The first step, as far as it goes.
fn detach_all<C: Clock>(domain: &Domain<C>, tail: &mut Tail, watermark: u64, done: &mut Done) {
    let start = tail.scan;
    let mut ahead = start;
    (0..AHEAD).for_each(|_| ask_ahead(&mut ahead));
    while let Some(version) = tail.scan.version(|_| ()) {
        ask_ahead(&mut ahead);
        // SAFETY: the version was published, and only a thread with the right to reclaim discards
        // it, which the caller is.
        let version = unsafe { &*version };
        // SAFETY: the caller, `reclaim_logs`, has entered a session, and `Log::reclaim` has given
        // it the right to reclaim this log.
        if !unsafe { detach(version, watermark, done) } {
            break;
        }
        tail.scan.advance(version.kind.room());
    }
    if tail.scan != start {
        // SeqCst: partner of the raising of the epoch, see the module's page: a version removed by
        // a store, as by an abort, is removed before the read of the epoch in `stamp`.
        fence(Ordering::SeqCst);
        // Later than the epoch of every session that may have found one of them; see the module's
        // page.
        let stamp = domain.stamp();
        tail.batches.push(Batch { end: tail.scan, stamp });
    }
}

/// The objects are prefetched this many versions ahead of the one that is detached: another thread
/// has last written most of them, and their transfers should overlap. Transfers of the versions
/// themselves do not: each version leads to the next one.
const AHEAD: usize = 8;

/// Prefetches the object of a version, which was published and is not discarded, and goes on to the
/// next version.
fn ask_ahead(place: &mut Position) {
    // The model checker has enough to do.
    if cfg!(loom) {
        return;
    }
    if let Some(version) = place.version(|_| ()) {
        // SAFETY: the version was published, and only a thread with the right to reclaim discards
        // it, which the caller is. Its object's address, its kind and its stamp are read, of which
        // the first two do not change.
        let version = unsafe { &*version };
        // The object's address and the next version's position are on the version's line, for which
        // this waits. Relaxed: nothing depends on the value; this load makes simulations charge for
        // the line.
        _ = version.stamp.load(Ordering::Relaxed);
        hint::prefetch(version.master());
        place.advance(version.kind.room());
    }
}

/// Whether no session that begins from now on finds the version.
///
/// # Safety
///
/// The caller is in a session, and has the right to reclaim the log that contains the version,
/// which is published.
unsafe fn detach(version: &Version, watermark: u64, done: &mut Done) -> bool {
    // Relaxed: published after it was written.
    let stamp = version.stamp.load(Ordering::Relaxed);
    if stamp == NEVER {
        return true;
    }
    // Acquire: partner of the Release in `stamp`.
    let superseded = version.own.superseded.load(Ordering::Acquire);
    if superseded != 0 {
        done.superseded += u64::from(superseded <= watermark);
        return superseded <= watermark;
    }
    if stamp > watermark {
        return false;
    }
    if version.has(FREED) {
        return true;
    }
    let this = core::ptr::from_ref(version).cast_mut();
    // SAFETY: the version is not superseded, and the caller is in a session (contract of this
    // function). So no earlier commit has freed the object (4 on the module's page).
    let head = unsafe { &*version.master() };
    if newest(head) != this {
        return false; // a thread has locked the object
    }
    // SAFETY: the version was committed up to the watermark, so that all sessions see it or a newer
    // one, and none reads the object itself (2 on the module's page). No other thread writes the
    // object: a newer version would be put in after this session's begin, and its stamp would be
    // later than the watermark for as long as this session is open.
    unsafe { (version.kind.write_back)(this, version.master()) };
    let detached = exchange(head, this, null_mut());
    done.written_back += u64::from(detached);
    detached
}

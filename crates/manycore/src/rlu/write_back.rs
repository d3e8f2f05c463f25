//! Writing back: a thread waits for the sessions that read objects rather than their copies, and
//! then unlocks the objects.

use core::time::Duration;

use super::config::Stall;
use super::handle::Handle;
use super::record::log::Committed;
use super::record::object::unlock;
use super::record::{Local, Member, Session};
use super::stats::count;
use crate::clock::Clock;
use crate::session::object::FREED;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::phase::{self, Phase};
use crate::sync::{clock, hint, mutation, thread, time, tuning};

/// With this many copies that no session can find any more, and without a commit, the thread checks
/// whether sessions still use the copies.
const LIMBO_MAX: usize = if cfg!(loom) { 1 } else { 256 };

/// The time for which a writer polls for the end of a session, in ticks: some microseconds, as long
/// as most sessions last. Longer if the program has declared that it never has more threads than
/// CPUs: see `tuning::set_spin_limit`.
const POLLED: u64 = 10_000;
/// The number of times that a writer then yields the CPU, before it sleeps.
const YIELDS: u32 = 32;
/// The longest pause.
const PAUSE_MAX_NS: u32 = 1_000_000;

impl<C: Clock> Handle<'_, C> {
    /// Writes back copies that block this thread, if their owner has deferred that.
    pub(super) fn clear_the_way(&mut self) {
        let owner = core::mem::replace(&mut self.in_the_way, core::ptr::null());
        // SAFETY: null, or a record of this domain, which is valid as long as the domain, and this
        // handle borrows that.
        let Some(owner) = (unsafe { owner.as_ref() }) else { return };
        let helped = owner.log.try_with(|committed| {
            let is_some = !committed.copies.is_empty();
            self.write_back(committed);
            is_some
        });
        count(&self.record.counters.helps, u64::from(helped == Some(true)));
        self.clear_limbo();
    }

    /// Writes back a thread's commits. To be called in no session.
    pub(super) fn write_back(&mut self, committed: &mut Committed) {
        if committed.copies.is_empty() {
            return;
        }
        phase::during(Phase::Quiescence, || self.wait_for_sessions(committed.stamp, committed));
        phase::during(Phase::Log, || self.apply(committed));
    }

    /// Copies the data of the copies to their objects: no session reads the objects.
    fn apply(&mut self, committed: &mut Committed) {
        self.free_limbo(committed.stamp);
        let shared_pool = &self.domain.shared_pool;
        let mut freed = 0;
        for &copy in &committed.copies {
            // SAFETY: the copies are committed and still locked, and this thread may write them
            // back, since it has the log. `write_back` has waited for every session that reads the
            // object instead (invariant 1). No session finds objects that `free` has ended
            // (contract of `RawSession::free`).
            unsafe {
                let (kind, object) = ((*copy).kind, (*copy).master());
                if (*copy).has(FREED) {
                    let Local { pool, dying, .. } = self.local();
                    dying.end(object, kind, pool, shared_pool);
                    freed += 1;
                } else {
                    (kind.write_back)(copy, object);
                    unlock(&*object);
                }
            }
            self.local().limbo.push(copy);
        }
        let counters = &self.record.counters;
        count(&counters.freed, freed);
        count(&counters.written_back, committed.copies.len() as u64 - freed);
        committed.copies.clear();
        committed.commits = 0;
    }

    /// Frees unused objects, if there are many.
    pub(super) fn clear_limbo(&mut self) {
        let limbo = &mut self.local().limbo;
        let copies = limbo.len();
        if copies > LIMBO_MAX {
            // SeqCst: partner of the fence of a session that begins (`fence_reader`): the objects
            // are unlocked before the stamp is taken, so that a session which sees the stamp does
            // not find the copies.
            fence(Ordering::SeqCst);
            let stamp = self.domain.stamp(self.known.get());
            self.observe(stamp);
            self.local().limbo.ripens(copies, stamp);
            let nothing = Committed::default();
            phase::during(Phase::Quiescence, || self.wait_for_sessions(stamp, &nothing));
            self.free_limbo(stamp);
        }
    }

    /// Frees the copies that only sessions can use that miss commits of this stamp: no such session
    /// is open.
    fn free_limbo(&mut self, stamp: u64) {
        let (domain, local) = (self.domain, self.local());
        for copy in local.limbo.take_ripe(stamp) {
            // SAFETY: no session is open that may miss this stamp, the callers have waited for
            // those: no other thread has the copy (invariant 3). `lock_by_copy` has initialised it,
            // in memory taken with the size of its kind.
            unsafe {
                let kind = (*copy).kind;
                (kind.end_copy)(copy);
                local.pool.give(copy.cast(), kind.copy, &domain.shared_pool);
            }
        }
    }

    /// Waits until no session is open that may miss a commit of this stamp. Sessions that begin
    /// meanwhile do not miss it.
    fn wait_for_sessions(&mut self, stamp: u64, committed: &Committed) {
        self.domain.fence_readers();
        count(&self.record.counters.quiescences, 1);
        if mutation!("rlu-no-wait") {
            return;
        }
        let mut waiting = core::mem::take(&mut self.waiting);
        let sessions = self.domain.members.scan().map(|record| (record, record.session()));
        waiting.extend(sessions.filter(|(_, session)| session.may_miss(stamp)));
        count(&self.record.counters.waits, waiting.len() as u64);
        // Before it waits for any: the thread of another may be waiting for this one's. Relaxed: of
        // this thread, or another's.
        let me = thread::id();
        assert!(
            waiting.iter().all(|(record, _)| record.thread() != me),
            "this thread has two handles of a domain, and would wait for its own session: end that before it commits in another"
        );
        for (record, session) in waiting.drain(..) {
            self.wait_for(record, session, stamp, committed);
        }
        self.waiting = waiting;
    }

    /// Waits until a session has ended, or announces that it sees commits of this stamp.
    fn wait_for(&self, record: &Member, session: Session, stamp: u64, committed: &Committed) {
        let (start, limit) = (clock::now(), tuning::spin_limit_or(|| POLLED));
        let lasts = || record.session().is_still(session, stamp);
        while lasts() && !clock::has_passed(start, limit) {
            hint::spin_loop();
        }
        let mut pauses: u32 = 0;
        let (start, patience) = (time::now(), self.domain.config.patience);
        let mut reports_after = patience;
        while lasts() {
            pauses += 1;
            if pauses <= YIELDS {
                hint::yield_now();
            } else {
                hint::sleep((1000 << (pauses - YIELDS).min(10)).min(PAUSE_MAX_NS));
            }
            let blocked_for = Duration::from_nanos(time::now().saturating_sub(start));
            if blocked_for > reports_after {
                self.report(record, blocked_for, committed);
                reports_after = blocked_for.saturating_add(patience);
            }
        }
        count(&self.record.counters.yields, u64::from(pauses));
    }

    fn report(&self, record: &Member, blocked_for: Duration, committed: &Committed) {
        let Some(on_stall) = &self.domain.config.on_stall else { return };
        // SAFETY: the copies in a log stay until they were written back, which requires the log,
        // and the caller has it.
        let bytes = committed.copies.iter().map(|copy| unsafe { (**copy).kind.copy }).sum();
        on_stall(&Stall {
            thread: record.thread(),
            blocked_for,
            objects: committed.copies.len(),
            bytes,
        });
    }
}

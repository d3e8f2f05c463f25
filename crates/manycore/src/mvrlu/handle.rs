//! A thread's access to a domain: sessions, and reading in them.

use alloc::boxed::Box;
use core::cell::Cell;

use manycore_traits::{Conflict, Link, RawSession, Sessions, View};

use super::config::{DOUBLINGS_MAX, YIELDS};
use super::domain::Domain;
use super::log;
use super::object::{InPlaceKindOf, KindOf, Master, OwnedKindOf, Version, VersionOf, newest};
use super::record::{Kept, Local, Member, Record};
use super::waits::Waiting;
use crate::clock::{Clock, LATEST, Ordo, UNDECIDED, record_of, undecided_by};
use crate::session::object::{BARE, FREED, NEVER, head};
use crate::session::retry_queue::{HAS_RETRY_QUEUES, QueueGuard};
use crate::sync::atomic::Ordering;
use crate::sync::{head_of, hint, mutation, order, thread};
use crate::thread_registry::EachThreadRegistersItsOwn;

/// A thread's handle of a [`Domain`]. If it is dropped in a session, it aborts that session.
pub struct Handle<'a, C: Clock = Ordo> {
    pub(super) domain: &'a Domain<C>,
    pub(super) record: &'a Member,
    /// Taken when the handle is dropped.
    pub(super) local: Option<Box<Local>>,
    /// The stamp of this thread's versions before their commit.
    pub(super) mine: u64,
    /// From which on the session is protected.
    pub(super) epoch: u64,
    /// The session sees commits with stamps up to this time, which is not before the epoch.
    pub(super) read: u64,
    /// The session also decides that commits which are under way get later stamps than this.
    pub(super) limit: u64,
    /// The thread has not seen stamps later than this, or it has waited until they were in the past
    /// of every clock.
    pub(super) settled: Cell<u64>,
    /// Whether commits or snapshots wait for the clocks, as of the session's begin.
    pub(super) waiting: Waiting,
    /// What the thread's next handle goes on with.
    pub(super) kept: Kept,
    /// How often the thread has searched for a grace period since the watermark last rose.
    pub(super) vain: u32,
    /// At this many steps over versions it does so again.
    pub(super) hops_max: u32,
    /// The address of the object of the session's conflict; 0 if there was none.
    contended: usize,
    /// The object in whose queue the next session waits; 0 if there is none.
    wanted: usize,
    /// The session's turn at that.
    queue_guard: Option<QueueGuard<'a>>,
    pub(super) is_open: bool,
    /// The first conflict that the session has met; from then on it can only abort.
    pub(super) doomed: Option<Conflict>,
    /// A handle is its thread's.
    _not_send: EachThreadRegistersItsOwn,
}

impl<C: Clock> Domain<C> {
    /// Lets the calling thread take part.
    pub fn register(&self) -> Handle<'_, C> {
        let (member, local) =
            self.members.take(|| Record::new(self.config.segment_bytes, self.config.segments));
        Handle::new(self, member, local)
    }
}

impl<'a, C: Clock> Handle<'a, C> {
    pub(super) fn new(domain: &'a Domain<C>, record: &'a Member, mut local: Box<Local>) -> Self {
        let kept = core::mem::take(&mut local.kept);
        Self {
            domain,
            record,
            local: Some(local),
            mine: undecided_by(core::ptr::from_ref::<Record>(record).expose_provenance()),
            epoch: 0,
            read: 0,
            limit: 0,
            settled: Cell::new(0),
            waiting: Waiting::SNAPSHOTS,
            kept,
            vain: 0,
            hops_max: domain.hops_max(),
            contended: 0,
            wanted: 0,
            queue_guard: None,
            is_open: false,
            doomed: None,
            _not_send: EachThreadRegistersItsOwn::default(),
        }
    }

    /// The thread's own part.
    #[inline]
    pub(super) fn local(&mut self) -> &mut Local {
        self.local.as_mut().expect("the handle is not dropped yet")
    }

    /// Makes the handle the calling thread's own, after another thread has passed it on. Reports
    /// then name this thread.
    pub fn adopt(&mut self) {
        self.record.thread.store(thread::id(), Ordering::Relaxed); // Relaxed: for reports
    }

    /// The domain.
    pub fn domain(&self) -> &'a Domain<C> {
        self.domain
    }

    /// Waits in the queue of the object of this thread's last conflict, if there was one. Sessions
    /// do so when they begin, except those of [`begin_at_floor`](Self::begin_at_floor): their
    /// caller has read the clock already, and that time must not be from before the wait.
    #[inline]
    pub fn wait_to_retry(&mut self) {
        self.contended = 0;
        if self.wanted != 0 {
            self.queue_guard = self.domain.retry_queues.take(core::mem::take(&mut self.wanted));
        }
    }

    #[inline]
    pub(super) fn open(&mut self, view: View) {
        debug_assert!(!self.is_open, "a session has begun in a session");
        self.wait_to_retry();
        self.is_open = true;
        self.kept.sessions = self.kept.sessions.saturating_add(1);
        if view == View::Snapshot && self.kept.account.count(1, self.domain.config.hysteresis) {
            self.domain.account(&self.kept.account);
        }
        self.epoch = self.domain.enter(self.record);
        self.waiting = self.domain.waiting();
        (self.read, self.limit) = match view {
            View::Latest => (LATEST, self.epoch),
            View::Snapshot => {
                let now = self.now().max(self.epoch);
                (now, now)
            }
        }
    }

    /// The time of a snapshot that begins.
    #[inline]
    fn now(&self) -> u64 {
        let clock = &self.domain.clock;
        let mut now = if self.waiting.has_snapshots() { clock.fresh() } else { clock.present() };
        // It sees this thread's own commits, and all commits that those have seen. With a relaxed
        // clock, these may be slightly in the future.
        while now < self.settled.get() {
            hint::pause();
            now = clock.present();
        }
        now
    }

    /// Nothing is read or written any more in the session.
    #[inline]
    pub(super) fn close(&mut self) {
        self.record.leave();
        self.is_open = false;
        self.queue_guard = None;
    }

    /// The session has met a conflict with another.
    #[cold]
    pub(super) fn meet(&mut self, conflict: Conflict) -> Conflict {
        self.doomed.get_or_insert(conflict);
        conflict
    }

    /// The session has met a conflict on an object.
    #[cold]
    pub(super) fn meet_at<T>(&mut self, link: Link<T>, conflict: Conflict) -> Conflict {
        if HAS_RETRY_QUEUES && matches!(conflict, Conflict::Locked | Conflict::Changed) {
            self.contended = link.as_ptr().addr();
        }
        self.meet(conflict)
    }

    /// Whether the session may lock some hundred objects more: its log is not larger than
    /// [`Config::segments_max`](super::Config::segments_max) segments.
    #[cfg(not(loom))]
    pub(crate) fn has_room(&mut self) -> bool {
        let most = self.domain.config.segments_max;
        self.local().writer.has_room(most)
    }

    /// The work between two sessions, if there is any.
    #[inline]
    pub(super) fn between_sessions(&mut self) {
        let due = self.kept.hops.get() >= self.hops_max || self.kept.is_filling;
        if due || self.domain.watermark() != self.kept.reclaimed {
            self.maintain(due);
        }
    }

    /// The number of doublings of the interval between searches, after [`YIELDS`] unsuccessful
    /// ones; at most [`DOUBLINGS_MAX`].
    #[inline]
    pub(super) fn doublings(&self) -> u32 {
        self.vain.saturating_sub(YIELDS).min(DOUBLINGS_MAX)
    }

    /// A commit with this stamp was seen: this thread's later sessions and commits are later than
    /// it, and so are those of threads that this one informs.
    #[inline]
    pub(super) fn observe(&self, stamp: u64) {
        if stamp > self.settled.get() {
            self.settled.set(self.settle(stamp));
        }
    }

    /// Waits until every clock has passed the stamp, if snapshots do not see to it that they are
    /// later.
    #[inline]
    pub(super) fn settle(&self, stamp: u64) -> u64 {
        let waits = self.waiting.has_commits() && !mutation!("mvrlu-nobody-waits");
        if waits { self.domain.clock.settle(stamp) } else { stamp }
    }

    /// Whether the session sees the version; a version without data represents the next older one.
    #[inline]
    fn sees(&self, version: &Version) -> bool {
        // Acquire: partner of the Release in `commit`.
        let stamp = version.stamp.load(order!(Acquire, "mvrlu-sees"));
        if stamp < UNDECIDED {
            return self.sees_stamp(version, stamp);
        }
        self.sees_undecided(version, stamp)
    }

    #[inline]
    fn sees_stamp(&self, version: &Version, stamp: u64) -> bool {
        if stamp > self.read {
            return false;
        }
        self.observe(stamp);
        !version.has(BARE)
    }

    #[cold]
    fn sees_undecided(&self, version: &Version, mut stamp: u64) -> bool {
        loop {
            if stamp == NEVER {
                return false;
            }
            if stamp == self.mine {
                return !version.has(BARE);
            }
            if stamp < UNDECIDED {
                return self.sees_stamp(version, stamp);
            }
            let record: *const Record = core::ptr::with_exposed_provenance(record_of(stamp));
            // SAFETY: `mine` of a handle exposes the address of its record, which is in `stamp`;
            // records are valid as long as their domain, which this handle borrows.
            let fate = unsafe { &*record }.decision.fate(self.limit);
            // Acquire: partner of the Release in `commit`. If the stamp is still open, the fate was
            // that of this transaction.
            let again = version.stamp.load(order!(Acquire, "mvrlu-again"));
            if again == stamp {
                return fate.is_some_and(|fate| self.sees_stamp(version, fate));
            }
            stamp = again;
        }
    }

    /// The version that the session sees; null for the object itself.
    ///
    /// # Safety
    ///
    /// In a session, in which the version was found.
    pub(super) unsafe fn version(&self, mut version: *mut Version) -> *mut Version {
        let mut hops = self.kept.hops.get();
        // SAFETY: null, or a version that was found in this session (contract of this function) and
        // so is not discarded before the session's end; so are the older ones, which its chain
        // leads to.
        while let Some(v) = unsafe { version.as_ref() } {
            hops += 1;
            if self.sees(v) {
                break;
            }
            version = v.own.older;
        }
        self.kept.hops.set(hops);
        version
    }

    /// What the session sees of an object with this newest version.
    ///
    /// # Safety
    ///
    /// As of [`RawSession::deref`].
    #[inline]
    pub(super) unsafe fn data<T>(&self, link: Link<T>, version: *mut Version) -> *const T {
        // SAFETY: the object is valid (contract of this function), and a version of it that was
        // found in this session is not discarded before its end. Their contents do not change
        // before then, or are this session's own.
        unsafe {
            if version.is_null() {
                head_of(&Master::of(link).as_ref().data)
            } else {
                head_of(&(*version.cast::<VersionOf<T>>()).data)
            }
        }
    }
}

// SAFETY: the module's page describes a session's view, under *Sessions and grace periods*: it is
// not overwritten or discarded before the session's end, even if clocks are wrong.
unsafe impl<C: Clock> Sessions for Domain<C> {
    type Handle<'a>
        = Handle<'a, C>
    where
        Self: 'a;

    fn register(&self) -> Handle<'_, C> {
        Self::register(self)
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.stats().visit(visit);
    }
}

// SAFETY: objects that a session has found do not change until the session's end: see *Sessions and
// grace periods* in the module's page.
unsafe impl<C: Clock> RawSession for Handle<'_, C> {
    #[inline]
    unsafe fn begin(&mut self, view: View) {
        self.open(view);
    }

    #[inline]
    unsafe fn deref<T: Copy>(&self, link: Link<T>) -> *const T {
        debug_assert!(self.is_open, "an object is read outside a session");
        // SAFETY: session and object are there (contract of `RawSession::deref`); the newest
        // version is found in this session.
        unsafe {
            let mut version = newest(head(link));
            if !version.is_null() {
                version = self.version(version);
            }
            self.data(link, version)
        }
    }

    #[inline]
    unsafe fn try_lock<T: Copy>(&mut self, link: Link<T>) -> Result<*mut T, Conflict> {
        // SAFETY: the session is open and has found the object (contract of
        // `RawSession::try_lock`), which stays until its end.
        unsafe { self.lock(link) }
    }

    unsafe fn try_lock_const<T: Copy>(&mut self, link: Link<T>) -> Result<(), Conflict> {
        // SAFETY: the session is open and has found the object (contract of
        // `RawSession::try_lock_const`).
        unsafe { self.lock_bare(link, 0) }
    }

    #[inline]
    unsafe fn read_unlocked<T: Copy>(&mut self, link: Link<T>) -> Result<*const T, Conflict> {
        // SAFETY: the session is open and has found the object (contract of
        // `RawSession::read_unlocked`).
        unsafe { self.look_unlocked(link) }
    }

    #[inline]
    unsafe fn alloc<T: Copy>(&mut self, data: T) -> Link<T> {
        self.make(data)
    }

    #[inline]
    unsafe fn free<T: Copy>(&mut self, link: Link<T>) -> Result<(), Conflict> {
        // SAFETY: the session is open and has found the object (contract of `RawSession::free`).
        unsafe { self.lock_bare(link, FREED) }
    }

    fn make_owned<T: Send + Sync + 'static>(&mut self, value: T) -> Link<T> {
        let (kind, shared_pool) = (&OwnedKindOf::<T>::KIND, &self.domain.shared_pool);
        self.local().pool.make_owned(kind, value, shared_pool)
    }

    unsafe fn end_owned<T: Send + Sync + 'static>(&mut self, link: Link<T>) {
        let (kind, shared_pool) = (&OwnedKindOf::<T>::KIND, &self.domain.shared_pool);
        // SAFETY: `make_owned` has made it, and no thread has it (contract of
        // `RawSession::end_owned`).
        unsafe {
            let Local { pool, dying, .. } = self.local();
            dying.end(link.as_ptr().cast(), kind, pool, shared_pool);
        }
    }

    fn end_dying(&mut self) {
        debug_assert!(!self.is_open, "destructors run in no session");
        let shared_pool = &self.domain.shared_pool;
        while let Some((object, kind)) = self.local().dying.pop() {
            // SAFETY: no thread has a dying object, and it has been taken from the list to be ended
            // once.
            unsafe { self.local().pool.end(object, kind, shared_pool) };
        }
    }

    unsafe fn claim_owned<T: Send + Sync + 'static>(&mut self, link: Link<T>) {
        self.kept.fresh.push((link.as_ptr().cast(), &OwnedKindOf::<T>::KIND));
    }

    unsafe fn free_owned<T: Send + Sync + 'static>(
        &mut self,
        link: Link<T>,
    ) -> Result<(), Conflict> {
        let bare = Link::<()>::from_ptr(link.as_ptr());
        // SAFETY: session and object are there (contract of `RawSession::free_owned`); `make_owned`
        // has made it of this kind, whose copies have no data.
        unsafe { self.lock_bare_of_kind(bare, &OwnedKindOf::<T>::KIND, FREED) }
    }

    unsafe fn free_in_place<T: Copy>(&mut self, link: Link<T>) -> Result<(), Conflict> {
        // SAFETY: the session is open and has found the object (contract of
        // `RawSession::free_in_place`).
        unsafe { self.lock_bare_of_kind(link, &InPlaceKindOf::<T>::KIND, FREED) }
    }

    fn adopt(&mut self) {
        Self::adopt(self);
    }

    fn locks_max<T: Copy>(&self) -> usize {
        let config = &self.domain.config;
        // One segment may be half full already, and two for the others.
        let versions = log::versions_in(config.segment_bytes, KindOf::<T>::KIND.room());
        match config.segments_max.saturating_sub(3) {
            // A transaction begins with a segment that is free at least.
            0 => versions / 2,
            segments => segments * versions,
        }
    }

    unsafe fn doom(&mut self, conflict: Conflict) {
        self.meet(conflict);
    }

    #[inline]
    unsafe fn commit(&mut self) -> Result<(), Conflict> {
        if let Some(conflict) = self.doomed {
            self.end_by_abort();
            return Err(conflict);
        }
        self.end_by_commit(|_| ());
        Ok(())
    }

    unsafe fn abort(&mut self) {
        self.end_by_abort();
    }

    unsafe fn back_off(&mut self, conflict: Conflict, attempts: u32) {
        if conflict == Conflict::Full {
            self.wait_for_room();
        }
        // At the first conflict, only if the object has a queue already. That loses less where two
        // or three threads each want many objects: simulated with 448 threads, a tree of 333 leaves
        // with 50 % updates by uniform keys reaches 0.93x of its throughput without queues, rather
        // than 0.89x.
        let object = self.contended;
        if object != 0 && (attempts > 0 || self.domain.retry_queues.is_busy(object)) {
            self.wanted = object;
        }
        // With more threads than CPUs the owner may wait for one: see `ThreadSlot::back_off`.
        if self.wanted == 0 || attempts > 8 {
            self.record.back_off(attempts);
        }
    }
}

impl<C: Clock> Drop for Handle<'_, C> {
    fn drop(&mut self) {
        if self.is_open {
            self.end_by_abort();
        }
        self.kept.count_hops(&self.record.counters);
        if let Some(mut local) = self.local.take() {
            local.kept = core::mem::take(&mut self.kept);
            self.record.give_back(local);
        }
    }
}

impl<C: Clock> core::fmt::Debug for Handle<'_, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Handle").field("is_open", &self.is_open).finish_non_exhaustive()
    }
}

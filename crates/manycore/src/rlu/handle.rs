//! A thread's access to a domain: sessions, and reading in them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;

use manycore_traits::{Conflict, Link, RawSession, Sessions, View};

use super::domain::Domain;
use super::record::object::{
    CopyOf, Head, Header, InPlaceKindOf, Kind, Master, OwnedKindOf, copy_of, kind_of,
};
use super::record::{Local, Member, Record, Session};
use super::stats::count;
use crate::clock::{Clock, Counter, LATEST, UNDECIDED, undecided_by};
use crate::session::object::{BARE, FREED, NEVER, head};
use crate::sync::atomic::Ordering;
use crate::sync::{head_of, order, thread};
use crate::thread_registry::EachThreadRegistersItsOwn;

/// A thread's access to a [`Domain`]. If it is dropped in a session, it aborts the session.
pub struct Handle<'a, C: Clock = Counter> {
    pub(super) domain: &'a Domain<C>,
    pub(super) record: &'a Member,
    /// Taken when the handle is dropped.
    pub(super) local: Option<Box<Local>>,
    /// The stamp of this thread's copies before their commit.
    pub(super) mine: u64,
    /// The session sees commits with stamps up to this.
    pub(super) read: u64,
    /// The session decides that the stamps of commits under way are later than this.
    limit: u64,
    /// The latest stamp that this thread knows; its record has the stamp, too.
    pub(super) known: Cell<u64>,
    steals: Cell<u64>,
    pub(super) is_open: bool,
    /// The first conflict that the session has met: it can only abort.
    pub(super) doomed: Option<Conflict>,
    /// What the session has locked.
    pub(super) locked: Vec<*mut Header>,
    /// What it has made.
    pub(super) fresh: Vec<(*mut Head, &'static Kind)>,
    /// The thread whose commit was found on an object that this session wanted to lock.
    pub(super) in_the_way: *const Record,
    /// Sessions that a writer waits for.
    pub(super) waiting: Vec<(&'a Member, Session)>,
    /// A handle is its thread's.
    _not_send: EachThreadRegistersItsOwn,
}

impl<C: Clock> Domain<C> {
    /// Lets the calling thread take part.
    pub fn register(&self) -> Handle<'_, C> {
        let (member, local) = self.members.take(Record::new);
        Handle::new(self, member, local)
    }
}

impl<'a, C: Clock> Handle<'a, C> {
    pub(super) fn new(domain: &'a Domain<C>, record: &'a Member, mut local: Box<Local>) -> Self {
        let locked = core::mem::take(&mut local.locked);
        let fresh = core::mem::take(&mut local.fresh);
        Self {
            domain,
            record,
            local: Some(local),
            mine: undecided_by(core::ptr::from_ref::<Record>(record).addr()),
            read: 0,
            limit: 0,
            known: Cell::new(record.known.load(Ordering::Relaxed)), // Relaxed: of this thread
            steals: Cell::new(0),
            is_open: false,
            doomed: None,
            locked,
            fresh,
            in_the_way: core::ptr::null(),
            waiting: Vec::new(),
            _not_send: EachThreadRegistersItsOwn::default(),
        }
    }

    /// The thread's own part.
    #[inline]
    pub(super) fn local(&mut self) -> &mut Local {
        self.local.as_mut().expect("the handle is not dropped yet")
    }

    /// The domain.
    pub fn domain(&self) -> &'a Domain<C> {
        self.domain
    }

    #[inline]
    fn open(&mut self, view: View) {
        debug_assert!(!self.is_open, "a session has begun in a session");
        if !self.in_the_way.is_null() {
            self.clear_the_way(); // a caller that retries without `back_off` makes progress, too
        }
        self.is_open = true;
        match view {
            View::Latest => {
                let local = self.local();
                local.sessions += 1;
                let number = local.sessions;
                self.record.set_session(Session::untimed(number));
                self.domain.fence_reader();
                (self.read, self.limit) = (LATEST, 0);
            }
            View::Snapshot => {
                let epoch = self.domain.epoch();
                self.record.set_session(Session::since(epoch));
                self.domain.fence_reader();
                let time = self.domain.time(epoch);
                (self.read, self.limit) = (time, time);
            }
        }
    }

    /// Closes the session: nothing is read or written in it any more.
    #[inline]
    pub(super) fn close(&mut self) {
        self.record.set_session(Session::NONE);
        self.is_open = false;
    }

    /// The session has met a conflict with another.
    #[cold]
    pub(super) fn meet(&mut self, conflict: Conflict) -> Conflict {
        self.doomed.get_or_insert(conflict);
        conflict
    }

    /// The thread has made or seen a commit with this stamp. Its later sessions and commits are
    /// later than the stamp, and so are those of threads that this one informs.
    pub(super) fn observe(&self, stamp: u64) {
        if stamp > self.known.get() {
            self.known.set(stamp);
            self.domain.announce(self.record, stamp);
        }
    }

    /// Whether the session reads the copy rather than its object.
    #[cold]
    fn sees(&self, copy: &Header) -> bool {
        // Acquire, here and below: partner of the Release in `commit_locked`.
        let mut stamp = copy.stamp.load(order!(Acquire, "rlu-sees"));
        loop {
            if stamp == NEVER {
                return false;
            }
            if stamp == self.mine {
                return !copy.has(BARE);
            }
            if stamp < UNDECIDED {
                return self.sees_stamp(copy, stamp);
            }
            // SAFETY: `own` is a record of this domain, which is valid as long as the domain, and
            // this handle borrows that.
            let fate = unsafe { &*copy.own }.decision.fate(self.limit);
            // Acquire: partner of the Release in `commit_locked`. If the stamp is still open, the
            // fate was that of this transaction.
            let again = copy.stamp.load(Ordering::Acquire);
            if again == stamp {
                return fate.is_some_and(|fate| self.sees_stamp(copy, fate));
            }
            stamp = again;
        }
    }

    fn sees_stamp(&self, copy: &Header, stamp: u64) -> bool {
        if stamp > self.read {
            return false;
        }
        self.observe(stamp);
        self.steals.set(self.steals.get() + 1);
        !copy.has(BARE)
    }

    /// Why the session cannot lock an object that has a copy of another session.
    pub(super) fn conflict(&mut self, copy: &Header) -> Conflict {
        // Acquire: partner of the Release in `commit_locked`.
        let stamp = copy.stamp.load(Ordering::Acquire);
        if stamp >= UNDECIDED {
            return Conflict::Locked;
        }
        self.observe(stamp);
        self.in_the_way = copy.own;
        if copy.has(FREED) {
            Conflict::Freed
        } else if stamp > self.read {
            Conflict::Changed
        } else {
            Conflict::Full
        }
    }
}

// SAFETY: the module's page describes a session's view, under *Invariants*: the objects that it
// reads do not change until its end (1 and 2), even if clocks are wrong.
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

// SAFETY: no object or copy that a session has found is written or freed before the session's end:
// see *Invariants* (1 and 2) in the module's page.
unsafe impl<C: Clock> RawSession for Handle<'_, C> {
    #[inline]
    unsafe fn begin(&mut self, view: View) {
        self.open(view);
    }

    #[inline]
    unsafe fn deref<T: Copy>(&self, link: Link<T>) -> *const T {
        debug_assert!(self.is_open, "an object is read outside a session");
        // SAFETY: the link leads to a valid object (contract of `RawSession::deref`), and a copy
        // that is found in a session stays until its end (invariant 2). Their contents do not
        // change before then (invariant 1), or are this session's own.
        unsafe {
            let copy = copy_of(head(link));
            if copy.is_null() || !self.sees(&*copy) {
                head_of(&Master::of(link).as_ref().data)
            } else {
                head_of(&(*copy.cast::<CopyOf<T>>()).data)
            }
        }
    }

    #[inline]
    unsafe fn try_lock<T: Copy>(&mut self, link: Link<T>) -> Result<*mut T, Conflict> {
        // SAFETY: session and object are there (contract of `RawSession::try_lock`). Other threads
        // read the flags and data of this session's copy only after its commit.
        unsafe {
            let copy = self.lock_object(link, kind_of::<T>(), 0)?;
            (*copy).clear(BARE);
            Ok((*copy.cast::<CopyOf<T>>()).data.with_mut(|data| data))
        }
    }

    unsafe fn try_lock_const<T: Copy>(&mut self, link: Link<T>) -> Result<(), Conflict> {
        // SAFETY: the session is open and has found the object (contract of
        // `RawSession::try_lock_const`).
        unsafe { self.lock_object(link, kind_of::<T>(), BARE).map(|_| ()) }
    }

    #[inline]
    unsafe fn alloc<T: Copy>(&mut self, data: T) -> Link<T> {
        self.make(data)
    }

    #[inline]
    unsafe fn free<T: Copy>(&mut self, link: Link<T>) -> Result<(), Conflict> {
        // SAFETY: session and object are valid (contract of `RawSession::free`). Other threads read
        // the flags of this session's copy only after its commit.
        unsafe {
            let copy = self.lock_object(link, kind_of::<T>(), BARE)?;
            (*copy).set(FREED);
            Ok(())
        }
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
        self.fresh.push((link.as_ptr().cast(), &OwnedKindOf::<T>::KIND));
    }

    unsafe fn free_owned<T: Send + Sync + 'static>(
        &mut self,
        link: Link<T>,
    ) -> Result<(), Conflict> {
        let bare = Link::<()>::from_ptr(link.as_ptr());
        // SAFETY: session and object are there (contract of `RawSession::free_owned`); `make_owned`
        // has made it of this kind, whose copies have no data. Other threads read the flags of
        // this session's copy only after its commit.
        unsafe {
            let copy = self.lock_object(bare, &OwnedKindOf::<T>::KIND, BARE)?;
            (*copy).set(FREED);
            Ok(())
        }
    }

    unsafe fn free_in_place<T: Copy>(&mut self, link: Link<T>) -> Result<(), Conflict> {
        // SAFETY: session and object are there (contract of `RawSession::free_in_place`). Other
        // threads read the flags of this session's copy only after its commit.
        unsafe {
            let copy = self.lock_object(link, &InPlaceKindOf::<T>::KIND, BARE)?;
            (*copy).set(FREED);
            Ok(())
        }
    }

    fn adopt(&mut self) {
        self.record.thread.store(thread::id(), Ordering::Relaxed); // Relaxed: for reports
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
        self.end_by_commit();
        Ok(())
    }

    unsafe fn abort(&mut self) {
        self.end_by_abort();
    }

    unsafe fn back_off(&mut self, _conflict: Conflict, attempts: u32) {
        self.clear_the_way();
        self.record.back_off(attempts);
    }
}

impl<C: Clock> Drop for Handle<'_, C> {
    fn drop(&mut self) {
        if self.is_open {
            self.end_by_abort();
        }
        count(&self.record.counters.steals, self.steals.get());
        if let Some(mut local) = self.local.take() {
            local.locked = core::mem::take(&mut self.locked);
            local.fresh = core::mem::take(&mut self.fresh);
            self.record.give_back(local);
        }
    }
}

impl<C: Clock> core::fmt::Debug for Handle<'_, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Handle").field("is_open", &self.is_open).finish_non_exhaustive()
    }
}

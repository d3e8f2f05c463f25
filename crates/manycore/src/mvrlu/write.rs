//! Writing in a session: locks, new objects, the commit.

use manycore_traits::{Conflict, Link};

use super::handle::Handle;
use super::log;
use super::object::{Chain, Head, Kind, KindOf, Version, VersionOf, exchange, newest};
use super::record::Local;
use super::stats::count;
use crate::clock::{Clock, UNDECIDED};
use crate::session::object::{BARE, FREED, NEVER, head};
use crate::session::pool::SIZE_MAX;
use crate::sync::atomic::Ordering;
use crate::sync::cell::UnsafeCell;
use crate::sync::{full_fence, hint, order};

#[cold]
fn too_large(bytes: usize, segment_bytes: usize) -> ! {
    let most = SIZE_MAX - size_of::<Head>();
    assert!(bytes <= most, "an object of {bytes} bytes: the largest has {most}");
    panic!(
        "an object of {bytes} bytes does not fit into a log of segments of {segment_bytes}: make Config::segment_bytes larger"
    )
}

impl<C: Clock> Handle<'_, C> {
    /// # Safety
    ///
    /// As of `RawSession::try_lock`.
    #[inline]
    pub(super) unsafe fn lock<T: Copy>(&mut self, link: Link<T>) -> Result<*mut T, Conflict> {
        // SAFETY: session and object are there (contract of this function); `lock_with` passes this
        // session's own version of an object of type `T`.
        unsafe { self.lock_with(link, &KindOf::<T>::KIND, 0, |mine| Self::with_data(mine)) }
    }

    /// Locks without data.
    ///
    /// # Safety
    ///
    /// As of `RawSession::try_lock`.
    #[inline]
    pub(super) unsafe fn lock_bare<T: Copy>(
        &mut self,
        link: Link<T>,
        flag: usize,
    ) -> Result<(), Conflict> {
        // SAFETY: the session is open, and has found the object (contract of this function).
        unsafe { self.lock_bare_of_kind(link, &KindOf::<T>::KIND, flag) }
    }

    /// Does the same, for an object of another kind than its data's.
    ///
    /// # Safety
    ///
    /// As for `RawSession::try_lock`; the kind is the object's, and its copies have this data.
    #[inline]
    pub(super) unsafe fn lock_bare_of_kind<T: Copy>(
        &mut self,
        link: Link<T>,
        kind: &'static Kind,
        flag: usize,
    ) -> Result<(), Conflict> {
        let again = |mine: *mut Version| {
            // SAFETY: `lock_with` passes this session's own version, whose flags others read
            // only after the commit.
            unsafe { (*mine).set(flag) };
            core::ptr::null_mut()
        };
        // The data is copied in case that the session wants to change it after all.
        // SAFETY: the session is open and has found the object (contract of this function), which
        // stays until its end.
        unsafe { self.lock_with(link, kind, BARE | flag, again).map(|_| ()) }
    }

    /// Locks an object with a version of these flags. If the session has locked the object already,
    /// `again` gets the existing version.
    ///
    /// # Safety
    ///
    /// As of `RawSession::try_lock`.
    #[inline]
    unsafe fn lock_with<T: Copy>(
        &mut self,
        link: Link<T>,
        kind: &'static Kind,
        flags: usize,
        again: impl Fn(*mut Version) -> *mut T,
    ) -> Result<*mut T, Conflict> {
        loop {
            // SAFETY: session and object are valid (contract of this function). A lockable newest
            // version was found in this session, and is in the session's view: by its stamp, or
            // because the session is for the latest.
            unsafe {
                let newest = match self.lockable(link) {
                    // By this session itself, which is no conflict with another.
                    Err(conflict) if self.is_mine(self::newest(head(link))) => {
                        return Err(conflict);
                    }
                    lockable => lockable.map_err(|conflict| self.meet_at(link, conflict))?,
                };
                if self.is_mine(newest) {
                    return Ok(again(newest));
                }
                let data = self.data(link, newest);
                hint::touch(data);
                let data = data.read();
                match self.push(link, kind, newest, flags, data) {
                    // It was written back meanwhile, which is no conflict.
                    Err(Conflict::Locked) if self::newest(head(link)).is_null() => {}
                    result => return result.map_err(|conflict| self.meet_at(link, conflict)),
                }
            }
        }
    }

    /// # Safety
    ///
    /// As of `RawSession::read_unlocked`.
    #[inline]
    pub(super) unsafe fn look_unlocked<T: Copy>(
        &mut self,
        link: Link<T>,
    ) -> Result<*const T, Conflict> {
        // Partner: the same fence of another session, which has put its version in before, as this
        // one has. One of the two then finds the other's.
        full_fence!("mvrlu-read-unlocked");
        // SAFETY: session and object are valid (contract of this function); a newest version that
        // could be locked is in the session's view.
        unsafe {
            match self.lockable(link) {
                Ok(newest) => Ok(self.data(link, newest)),
                Err(conflict) => Err(self.meet_at(link, conflict)),
            }
        }
    }

    fn is_mine(&self, version: *mut Version) -> bool {
        // SAFETY: null, or a version that was found in this session, and so is not discarded before
        // its end. Relaxed: this thread has written it, or it belongs to another.
        unsafe { version.as_ref() }.is_some_and(|v| v.stamp.load(Ordering::Relaxed) == self.mine)
    }

    /// The newest version of an object, if this session may lock the object or has done so.
    ///
    /// # Safety
    ///
    /// As of `RawSession::try_lock`.
    #[inline]
    unsafe fn lockable<T>(&self, link: Link<T>) -> Result<*mut Version, Conflict> {
        debug_assert!(self.is_open, "an object is locked outside a session");
        // SAFETY: the session has found the object (contract of this function), which stays until
        // its end.
        let newest = newest(unsafe { head(link) });
        // SAFETY: null, or a version that was found in this session, and so is not discarded before
        // its end.
        let Some(version) = (unsafe { newest.as_ref() }) else { return Ok(newest) };
        // Acquire: partner of the Release in `end_by_commit`.
        let stamp = version.stamp.load(order!(Acquire, "mvrlu-lockable"));
        if stamp == self.mine {
            return if version.has(FREED) { Err(Conflict::Freed) } else { Ok(newest) };
        }
        if stamp >= UNDECIDED {
            return Err(Conflict::Locked);
        }
        if stamp > self.read {
            return Err(Conflict::Changed);
        }
        self.observe(stamp);
        if version.has(FREED) { Err(Conflict::Freed) } else { Ok(newest) }
    }

    /// Puts a version before the newest one. This is the lock.
    ///
    /// # Safety
    ///
    /// As of `RawSession::try_lock`.
    #[inline]
    unsafe fn push<T: Copy>(
        &mut self,
        link: Link<T>,
        kind: &'static Kind,
        newest: *mut Version,
        flags: usize,
        data: T,
    ) -> Result<*mut T, Conflict> {
        if self.kept.locked.is_empty() {
            self.record.decision.open(self.epoch);
        }
        let place = self.append(kind.room()).ok_or(Conflict::Full)?.cast::<VersionOf<T>>();
        let (chain, master) = (Chain::before(newest), link.as_ptr().cast());
        let header = Version::new(self.mine, chain, kind, master, flags);
        // SAFETY: `append` returns room for this many bytes, aligned to a line, in a segment that
        // only this writer fills.
        unsafe { place.write(VersionOf { header, data: UnsafeCell::new(data) }) };
        // SAFETY: the session has found the object (contract of this function), which stays until
        // its end.
        if !exchange(unsafe { head(link) }, newest, place.cast()) {
            self.local().writer.take_back(kind.room());
            return Err(Conflict::Locked);
        }
        self.kept.locked.push(place.cast());
        // SAFETY: the version is in this writer's log, written above, and stays until the
        // transaction is over and it is published.
        Ok(unsafe { (*place).data.with_mut(|data| data) })
    }

    fn append(&mut self, bytes: usize) -> Option<*mut Version> {
        let (domain, record) = (self.domain, self.record);
        let writer = &mut self.local().writer;
        let segments = writer.segments();
        let (place, begins) = writer.append(&record.log, bytes, domain.config.segments_max)?;
        if begins {
            self.has_begun_segment(segments);
        }
        Some(place)
    }

    #[cold]
    fn has_begun_segment(&mut self, segments: usize) {
        let (domain, record) = (self.domain, self.record);
        let low = domain.config.low() << self.doublings();
        let writer = &self.local().writer;
        let grown = writer.segments() - segments;
        let is_filling = writer.live(&record.log) >= low;
        count(&record.counters.grown, grown as u64);
        self.kept.is_filling |= is_filling;
    }

    /// The data of a version of this session, which may only be locked so far.
    ///
    /// # Safety
    ///
    /// The version belongs to this session, and its object has this type.
    unsafe fn with_data<T>(version: *mut Version) -> *mut T {
        // SAFETY: the version is this session's, of an object of type `T` (contract of this
        // function), and others read its flags and data only after the commit.
        unsafe {
            let data = (*version.cast::<VersionOf<T>>()).data.with_mut(|data| data);
            (*version).clear(BARE);
            data
        }
    }

    /// A new object, which no other thread knows.
    ///
    /// # Panics
    ///
    /// If it is too large.
    #[inline]
    pub(super) fn make<T: Copy>(&mut self, data: T) -> Link<T> {
        let kind = &KindOf::<T>::KIND;
        let segment_bytes = self.domain.config.segment_bytes;
        // The first is known to the compiler.
        if kind.object > SIZE_MAX || log::versions_in(segment_bytes, kind.room()) == 0 {
            too_large(size_of::<T>(), segment_bytes);
        }
        let shared_pool = &self.domain.shared_pool;
        let object = self.local().pool.make(kind, data, shared_pool);
        self.kept.fresh.push((object, kind));
        Link::from_ptr(object.cast())
    }

    /// Ends the session by its commit, and returns the stamp if it has written something. `decided`
    /// gets the stamp while the session's locks are held.
    #[inline]
    pub(super) fn end_by_commit(&mut self, decided: impl FnOnce(u64)) -> Option<u64> {
        self.kept.fresh.clear();
        let stamp = if self.kept.locked.is_empty() {
            self.close();
            None
        } else {
            self.commit_locked(decided)
        };
        self.between_sessions();
        stamp
    }

    fn commit_locked(&mut self, decided: impl FnOnce(u64)) -> Option<u64> {
        // SAFETY: `locked` has only versions of this session, which are in its log and are not
        // discarded before they are published, below.
        let ready = |writes, version: &*mut Version| unsafe { (**version).ready() } | writes;
        if !self.kept.locked.iter().fold(false, ready) {
            self.unlock_all();
            self.close();
            return None;
        }
        let (domain, settled) = (self.domain, self.settled.get());
        let stamp = self.record.decision.decide(|_| {
            loop {
                let stamp = domain.stamp();
                // Later than the stamps on which it is based. With a relaxed clock these may be
                // slightly in the future.
                if stamp > settled {
                    break stamp;
                }
            }
        });
        decided(stamp);
        let mut versions = 0;
        for &version in &self.kept.locked {
            // SAFETY: `locked` has only versions of this session, which are in its log and are not
            // discarded before they are published, below.
            let version = unsafe { &*version };
            if version.is_write() {
                Self::stamp(version, stamp);
                versions += 1;
            } else {
                Self::unlock(version);
            }
        }
        self.kept.locked.clear();
        let record = self.record;
        self.local().writer.publish(&record.log);
        self.close();
        count(&record.counters.commits, 1);
        count(&record.counters.versions, u64::from(versions));
        self.kept.versions += versions;
        self.kept.is_filling |=
            self.kept.versions >= domain.versions_max().saturating_mul(1 << self.doublings());
        self.settled.set(self.settle(stamp).max(settled));
        if self.kept.account.count(-1, self.domain.config.hysteresis) {
            self.domain.account(&self.kept.account);
        }
        Some(stamp)
    }

    /// Commits a version, and so ends the lock.
    fn stamp(version: &Version, stamp: u64) {
        // SAFETY: null, or the version before, which this one's lock keeps from being detached: it
        // is discarded only after it was superseded, which the store below does.
        if let Some(older) = unsafe { version.own.older.as_ref() } {
            // Release: partner of the Acquire in `detach`.
            older.own.superseded.store(stamp, Ordering::Release);
        }
        // Release: partner of the Acquire in `sees` and `lockable`: its flags.
        version.stamp.store(stamp, order!(Release, "mvrlu-stamp"));
    }

    /// Ends a lock without a change: the version before is the newest again.
    fn unlock(version: &Version) {
        // SAFETY: the session has the object locked, and locked objects are not freed.
        let head: &Head = unsafe { &*version.master() };
        // Release: partner of the Acquire in `newest`.
        head.store(version.own.older, Ordering::Release);
        // Release: partner of the Acquire in `sees_undecided`. A thread that mistakes this thread's
        // next transaction for this one finds this store.
        version.stamp.store(NEVER, Ordering::Release);
    }

    fn unlock_all(&mut self) {
        // SAFETY: `locked` has only versions of this session, which are in its log and are not
        // discarded before they are published, below.
        self.kept.locked.iter().for_each(|version| Self::unlock(unsafe { &**version }));
        self.kept.locked.clear();
        let record = self.record;
        self.local().writer.publish(&record.log);
    }

    /// Ends the session as if it had not been.
    pub(super) fn end_by_abort(&mut self) {
        self.doomed = None;
        if !self.kept.locked.is_empty() {
            self.unlock_all();
        }
        self.close();
        count(&self.record.counters.aborts, 1);
        let shared_pool = &self.domain.shared_pool;
        while let Some((object, kind)) = self.kept.fresh.pop() {
            // SAFETY: `make` has given the object only to this session, whose published changes are
            // not committed: no other thread has the object (contract of `RawSession::alloc`).
            unsafe {
                let Local { pool, dying, .. } = self.local();
                dying.end(object, kind, pool, shared_pool);
            }
        }
        self.between_sessions();
    }
}

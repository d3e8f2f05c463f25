//! Writing in a session: locks, new objects, the commit.

use manycore_traits::{Conflict, Link};

use super::handle::Handle;
use super::record::Local;
use super::record::object::{CopyOf, Head, Header, Kind, Master, copy_of, kind_of, lock, unlock};
use super::stats::count;
use crate::clock::Clock;
use crate::session::object::{FREED, NEVER, head};
use crate::sync::atomic::Ordering;
use crate::sync::cell::UnsafeCell;
use crate::sync::order;

impl<C: Clock> Handle<'_, C> {
    /// Locks an object by a copy with these flags. If this session has locked the object already,
    /// returns the copy that there is.
    ///
    /// # Safety
    ///
    /// As of `RawSession::try_lock`; the kind is the object's.
    #[inline]
    pub(super) unsafe fn lock_object<T: Copy>(
        &mut self,
        link: Link<T>,
        kind: &'static Kind,
        flags: usize,
    ) -> Result<*mut Header, Conflict> {
        debug_assert!(self.is_open, "an object is locked outside a session");
        // SAFETY: the session is open and has found the object (contract of this function), which
        // stays until its end.
        let head = unsafe { head(link) };
        let copy = copy_of(head);
        // SAFETY: null, or a copy that was found in a session, which stays until the session's end
        // (invariant 2).
        if let Some(other) = unsafe { copy.as_ref() } {
            // Relaxed: this thread has written it, or it is another's.
            return match other.stamp.load(Ordering::Relaxed) == self.mine {
                true if other.has(FREED) => Err(Conflict::Freed),
                true => Ok(copy),
                false => {
                    let conflict = self.conflict(other);
                    Err(self.meet(conflict))
                }
            };
        }
        // SAFETY: the object has no copy, so that its data is the last commit and is written only
        // while there is one, which a session that is open reads; this one has not (invariant 1).
        let data = unsafe { Master::of(link).as_ref().data.with(|data| data.read()) };
        self.lock_by_copy(head, kind, data, flags)
    }

    fn lock_by_copy<T: Copy>(
        &mut self,
        object: &Head,
        kind: &'static Kind,
        data: T,
        flags: usize,
    ) -> Result<*mut Header, Conflict> {
        let domain = self.domain;
        if self.locked.is_empty() {
            self.record.decision.open(0);
        }
        let copy = self.local().pool.take(kind.copy, &domain.shared_pool).cast::<CopyOf<T>>();
        let place = core::ptr::from_ref(object).cast_mut();
        let header =
            Header::new(self.mine, core::ptr::from_ref(&**self.record), kind, place, flags);
        // SAFETY: `take` returns memory of `kind.copy` bytes, which is the size of a `CopyOf<T>`,
        // aligned to 32 bytes, and in no other use.
        unsafe { copy.write(CopyOf { header, data: UnsafeCell::new(data) }) };
        if !lock(object, copy.cast()) {
            // SAFETY: taken above with this size, and the lock has not shown it to others.
            unsafe { self.local().pool.give(copy.cast(), kind.copy, &domain.shared_pool) };
            return Err(self.meet(Conflict::Locked));
        }
        self.locked.push(copy.cast());
        Ok(copy.cast())
    }

    /// A new object, which no other thread knows.
    #[inline]
    pub(super) fn make<T: Copy>(&mut self, data: T) -> Link<T> {
        let (kind, domain) = (kind_of::<T>(), self.domain);
        let object = self.local().pool.make(kind, data, &domain.shared_pool);
        self.fresh.push((object, kind));
        Link::from_ptr(object.cast())
    }

    /// Ends the session by its commit.
    #[inline]
    pub(super) fn end_by_commit(&mut self) {
        self.fresh.clear();
        if self.locked.is_empty() {
            self.close();
        } else {
            self.commit_locked();
        }
    }

    fn commit_locked(&mut self) {
        // SAFETY: `locked` has copies of this session only, which stay until they were written back
        // or given up.
        let ready = |writes, copy: &*mut Header| unsafe { (**copy).ready() } | writes;
        if !self.locked.iter().fold(false, ready) {
            self.unlock_all();
            return self.close();
        }
        let before = self.local().limbo.len();
        let (domain, known) = (self.domain, self.known.get());
        let stamp = self.record.decision.decide(|asked| domain.stamp(asked.max(known)));
        self.local().limbo.ripens(before, stamp);
        let mut locked = core::mem::take(&mut self.locked);
        locked.retain(|&copy| {
            // SAFETY: this session's own copies, which stay until they are in the log or in limbo.
            let header = unsafe { &*copy };
            if header.is_write() {
                // Release: partner of the Acquire in `sees` and `conflict`: its flags.
                header.stamp.store(stamp, order!(Release, "rlu-stamp"));
            } else {
                self.give_up(copy);
            }
            header.is_write()
        });
        self.close();
        count(&self.record.counters.commits, 1);
        count(&self.record.counters.copies, locked.len() as u64);
        self.observe(stamp);
        let record = self.record;
        record.log.with(|committed| {
            committed.copies.append(&mut locked);
            committed.stamp = stamp;
            committed.commits += 1;
            if committed.commits > self.domain.config.deferred {
                self.write_back(committed);
            }
        });
        self.locked = locked;
    }

    /// Takes a copy away that was not committed.
    fn give_up(&mut self, copy: *mut Header) {
        // SAFETY: callers take the copy from `locked`: it is this session's own. Its object stays,
        // because the session has it locked.
        unsafe {
            unlock(&*(*copy).master());
            // Release: partner of the Acquire in `sees`. A thread that mistakes this thread's next
            // transaction for this one finds this store.
            (*copy).stamp.store(NEVER, Ordering::Release);
        }
        self.local().limbo.push(copy);
    }

    fn unlock_all(&mut self) {
        while let Some(copy) = self.locked.pop() {
            self.give_up(copy);
        }
    }

    /// Ends the session as if it had not been.
    pub(super) fn end_by_abort(&mut self) {
        self.doomed = None;
        self.unlock_all();
        self.close();
        count(&self.record.counters.aborts, 1);
        let domain = self.domain;
        while let Some((object, kind)) = self.fresh.pop() {
            // SAFETY: `make` has given the object only to this session, whose published changes are
            // not committed: no thread has the object (contract of `RawSession::alloc`).
            unsafe {
                let Local { pool, dying, .. } = self.local();
                dying.end(object, kind, pool, &domain.shared_pool);
            }
        }
        self.clear_limbo();
    }
}

//! The interface between a journal and a domain: a session's writes, before others see them; a time
//! up to which the journal has all writes; and sessions that read at that time.
//!
//! A thread notes what its session has written ([`Handle::writes`], [`Handle::made`]), and commits
//! it ([`Handle::commit_at`]). A thread that collects the notes takes the time B,
//! [closes](Domain::close) it, and reads the notes. It finds every transaction with a stamp up to
//! B: the transaction was noted before it was decided; and either it was decided before `close`
//! read its thread's line, or its stamp is later than B. If the stamp of a note is not known yet,
//! [`Domain::fate`] tells it.

use alloc::boxed::Box;

use manycore_traits::{Conflict, Link};

use super::config::Config;
use super::domain::Domain;
use super::handle::Handle;
use super::object::{Head, Version};
use super::record::Record;
use crate::clock::{Clock, UNDECIDED};
use crate::object_pool::Memory;
use crate::session::object::{FREED, head};
use crate::session::pool::SharedPool;
use crate::sync::atomic::{Ordering, fence};
use crate::sync::{hint, mutation};

/// A thread that takes part, to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberId(*const Record);

// SAFETY: it is an address, of a record that all threads share and that is followed only by
// functions of its domain.
unsafe impl Send for MemberId {}
// SAFETY: a shared reference gives the address only, which is followed only by functions of its
// domain.
unsafe impl Sync for MemberId {}

/// An object that a session has locked to change or free it.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    version: *mut Version,
}

impl Write {
    /// The object.
    #[must_use]
    pub fn link<T>(&self) -> Link<T> {
        // SAFETY: the session is open in which this was found, and the version is its own.
        Link::from_ptr(unsafe { (*self.version).master() }.cast())
    }

    /// Bytes of the object, with the word before its data.
    #[must_use]
    pub fn object_bytes(&self) -> usize {
        // SAFETY: the session is open in which this was found, and the version is its own.
        unsafe { (*self.version).kind.object }
    }

    /// Whether the object ends with the session's commit.
    #[must_use]
    pub fn is_end(&self) -> bool {
        // SAFETY: the session is open in which this was found, and the version is its own.
        unsafe { (*self.version).has(FREED) }
    }
}

impl<C: Clock> Domain<C> {
    /// Creates one whose objects lie in memory of the caller's, and that has a floor: see
    /// [`raise_floor`](Self::raise_floor).
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    pub fn with_memory(clock: C, config: Config, memory: Box<dyn Memory>, floor: u64) -> Self {
        Self::with_parts(clock, config, SharedPool::with_memory(memory), floor)
    }

    /// When this returns, no new commit with a stamp up to this time can appear, except of
    /// transactions that have their stamp already. The time is one that the clock's
    /// [`present`](Clock::present) has returned.
    ///
    /// Reads each thread's line.
    pub fn close(&self, time: u64) {
        // SeqCst: between the reads of the clock and of the decisions. Partner: the exchange that
        // links a version. A commit with a stamp up to this time has linked its versions before the
        // clock had this time, and has opened its decision before that.
        fence(Ordering::SeqCst);
        for member in self.members.iter() {
            let record: &Record = member;
            self.fate_of(record, time);
        }
    }

    /// The stamp of a thread's present transaction, or of its last one. `None` if that stamp is
    /// later than `time`; this call makes sure that an undecided stamp will be later.
    ///
    /// # Safety
    ///
    /// The member is of this domain.
    pub unsafe fn fate(&self, member: MemberId, time: u64) -> Option<u64> {
        // SAFETY: records are valid as long as their domain, and this is one of its records
        // (contract of this function).
        self.fate_of(unsafe { &*member.0 }, time)
    }

    fn fate_of(&self, record: &Record, time: u64) -> Option<u64> {
        // The mistake: what is undecided is not made later.
        let time = if mutation!("mvrlu-close-open") { 0 } else { time };
        record.decision.fate(time).filter(|stamp| *stamp <= time)
    }
}

impl<C: Clock> Handle<'_, C> {
    /// This thread, to others.
    pub fn member_id(&self) -> MemberId {
        MemberId(core::ptr::from_ref::<Record>(self.record))
    }

    /// Begins a session that sees all commits up to the domain's floor, or up to `time` if that is
    /// later, and no later ones. It also sees this thread's own commits, and those that they have
    /// seen. Returns its time.
    ///
    /// It waits for no clock. It may miss a commit of another thread that has returned, if the
    /// commit is later than `time` and not below the floor, and this thread has neither seen nor
    /// been told of it.
    ///
    /// # Safety
    ///
    /// As of [`RawSession::begin`](manycore_traits::RawSession::begin). The time is one that the
    /// clock's [`present`](Clock::present) or [`fresh`](Clock::fresh) has returned, or 0.
    pub unsafe fn begin_at_floor(&mut self, time: u64) -> u64 {
        debug_assert!(!self.is_open, "a session has begun in a session");
        self.is_open = true;
        self.kept.sessions = self.kept.sessions.saturating_add(1);
        let floor = self.domain.enter_at_floor(self.record);
        self.waiting = self.domain.waiting();
        let (seen, now) = (self.settled.get(), floor.max(time));
        // A stamp may be a moment ahead of this thread's clock, and others may still take earlier
        // ones.
        while seen > now && self.domain.clock.present() < seen {
            hint::pause();
        }
        let read = now.max(seen);
        (self.epoch, self.read, self.limit) = (floor, read, read);
        read
    }

    /// What the session has locked, to change or free it.
    pub fn writes(&self) -> impl Iterator<Item = Write> {
        // SAFETY: `locked` has versions of this session only.
        let is_write = |version: &&*mut Version| unsafe { (***version).is_write() };
        self.kept.locked.iter().filter(is_write).map(|version| Write { version: *version })
    }

    /// Whether the session has locked an object, to change or free it.
    pub fn has_writes(&self) -> bool {
        self.writes().next().is_some()
    }

    /// The objects that the session has made, and their bytes with the word before the data.
    pub fn made<T>(&self) -> impl Iterator<Item = (Link<T>, usize)> {
        self.kept.fresh.iter().map(|(object, kind)| (Link::from_ptr(object.cast()), kind.object))
    }

    /// The data of an object as the session has written it, and the old data.
    ///
    /// # Safety
    ///
    /// The write belongs to this session, which is open, and the object is a `T`.
    pub unsafe fn written<T>(&self, write: Write) -> (*const T, *const T) {
        let link = write.link::<T>();
        // SAFETY: the version is of this session, its object is a `T` and locked (contract of this
        // function); the version before it was found by the session.
        unsafe {
            let before = (*write.version).own.older;
            (self.data(link, write.version), self.data(link, before))
        }
    }

    /// The data of an object that this session has made, in its initial state or with the session's
    /// changes.
    ///
    /// # Safety
    ///
    /// The session is open, has made the object, and that is a `T`.
    pub unsafe fn made_data<T>(&self, link: Link<T>) -> *const T {
        // SAFETY: the object is this session's (contract of this function), so that the newest
        // version is, too.
        unsafe {
            let head: &Head = head(link);
            // Relaxed: this thread has written it.
            let version = head.load(Ordering::Relaxed);
            self.data(link, version)
        }
    }

    /// As [`RawSession::commit`](manycore_traits::RawSession::commit); returns the stamp of the
    /// commit if it has written something.
    ///
    /// # Errors
    ///
    /// A conflict, as of that method; the session has ended then, too.
    ///
    /// # Safety
    ///
    /// The session is open; it ends with this call.
    pub unsafe fn commit_at(&mut self) -> Result<Option<u64>, Conflict> {
        // SAFETY: the session is open (contract of this function, that of `commit`).
        unsafe { self.commit_at_with(|_| ()) }
    }

    /// As [`commit_at`](Self::commit_at). `decided` gets the stamp when others can see the commit,
    /// while the session still has its locks: before it returns, no thread changes objects that the
    /// session has only locked.
    ///
    /// # Errors
    ///
    /// As of that.
    ///
    /// # Safety
    ///
    /// As of that.
    pub unsafe fn commit_at_with(
        &mut self,
        decided: impl FnOnce(u64),
    ) -> Result<Option<u64>, Conflict> {
        if let Some(conflict) = self.doomed {
            self.end_by_abort();
            return Err(conflict);
        }
        let stamp = self.end_by_commit(decided);
        debug_assert!(stamp.is_none_or(|stamp| stamp < UNDECIDED), "a stamp is a time");
        Ok(stamp)
    }

    /// The latest commit that this thread has made or seen, except for those that were written back
    /// to their objects.
    pub fn seen(&self) -> u64 {
        self.settled.get()
    }

    /// The first conflict that the session has met, after which it can only abort.
    pub fn doomed(&self) -> Option<Conflict> {
        self.doomed
    }
}

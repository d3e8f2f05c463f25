//! Sessions of a store: transactions, which write, and snapshots, which read.

use std::sync::atomic::Ordering;

use manycore::clock::Clock as _;
use manycore::session::{Conflict, RawSession};

use super::pointer::{Ptr, typed};
use super::record;
use super::shared::Thread;
use super::terms::Isolation;
use super::ticket::Ticket;
use crate::Persist;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::heap::words::{WORDS_MAX, with_words};
use crate::protocol;

/// Why a transaction does not commit. `?` makes it of what a method returns.
#[derive(Debug)]
pub enum Stop {
    /// Another thread was faster: [`Member::run`](super::Member::run) runs it again.
    Conflict(Conflict),
    /// The program's own choice: [`Member::run`](super::Member::run) returns [`Error::Cancelled`].
    Cancel,
    /// An error, which [`Member::run`](super::Member::run) returns.
    Error(Error),
}

impl From<Conflict> for Stop {
    fn from(conflict: Conflict) -> Self {
        Self::Conflict(conflict)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// A transaction that is open: it reads as of its begin, and what it writes itself. Dropped without
/// a commit, as by a panic, it has not been.
pub struct Transaction<'m, 's> {
    thread: &'m mut Thread<'s>,
    isolation: Isolation,
    is_open: bool,
    /// It has seen to it that the catalog speaks of objects of the program's own.
    is_marked: bool,
}

/// When a snapshot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Up to then, all commits are on the disk.
    Durable,
    /// Now, by the clock of this CPU.
    Present,
    /// Now: no commit that has returned is later.
    Latest,
}

/// A moment to read at.
pub struct Snapshot<'m, 's> {
    thread: &'m mut Thread<'s>,
}

/// Reads objects, in a transaction or a snapshot.
pub trait Session: sealed::Objects {
    /// What the session sees of an object of the program's own: see [`Ptr`].
    ///
    /// Time: that of a few instructions more than an access to memory, if the object has no newer
    /// versions.
    ///
    /// # Panics
    ///
    /// If the pointer leads to no object of this size.
    #[inline]
    #[track_caller]
    fn deref<T: Persist>(&self, ptr: Ptr<T>) -> &T
    where
        Self: Sized,
    {
        let place = ptr.place(self.heap());
        self.note(place, Ptr::<T>::WORDS);
        typed(self.object(place, Ptr::<T>::WORDS))
    }
}

impl Session for Transaction<'_, '_> {}
impl Session for Snapshot<'_, '_> {}

pub(super) mod sealed {
    use crate::heap::Heap;

    /// Objects by their places.
    pub trait Objects {
        /// The words of an object that was found in this session.
        fn object(&self, place: u64, words: usize) -> &[u64];

        /// What the caller is told hangs on all words of this object. What it changes itself, and
        /// objects on the way that lead to the same whatever is changed in them, it need not note.
        fn note(&self, place: u64, words: usize);

        /// The heap in which they are.
        fn heap(&self) -> &Heap;
    }
}

/// What the session of this thread sees of an object.
#[inline]
fn object<'a>(thread: &'a Thread<'_>, place: u64, words: usize) -> &'a [u64] {
    with_words!(words, |W| {
        // SAFETY: the session is open until the `Transaction` or `Snapshot` is dropped. Structures
        // link to a place only with the number of words that they allocated there; of a pointer of
        // the program's, `Heap::has_object` has said that there is such an object. What
        // a session sees changes only by `try_lock` of the same session, which borrows the
        // transaction exclusively.
        unsafe { &*thread.handle.deref(thread.shared.heap.link::<W>(place)) }
    })
}

impl<'m, 's> Transaction<'m, 's> {
    pub(super) fn begin(thread: &'m mut Thread<'s>, isolation: Isolation) -> Self {
        thread.handle.take_turn();
        let clock = thread.handle.domain().clock();
        let now = match isolation {
            Isolation::Linearizable => clock.0.fresh(),
            Isolation::Snapshot | Isolation::Serializable => clock.present(),
        };
        thread.reads.begin(isolation != Isolation::Snapshot);
        // SAFETY: no session is open: `Transaction` and `Snapshot` borrow the thread for as long as
        // theirs is. The time is the clock's.
        unsafe { thread.handle.begin_at_floor(now) };
        Self { thread, isolation, is_open: true, is_marked: false }
    }

    /// Runs `f` and commits.
    pub(super) fn run<R>(
        mut self,
        f: impl FnOnce(&mut Self) -> Result<R, Stop>,
    ) -> Result<Ticket<'s, R>, Stop> {
        let value = f(&mut self)?;
        self.commit_with(value)
    }

    /// Commits, and returns at once. If nobody [waits](Ticket::wait_for) for the ticket, the commit
    /// is written with the next one that somebody waits for.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`] if another thread was faster, and [`Error::TooLarge`]: the transaction is
    /// as if it had not been.
    pub fn commit(self) -> Result<Ticket<'s, ()>, Stop> {
        self.commit_with(())
    }

    fn commit_with<R>(mut self, value: R) -> Result<Ticket<'s, R>, Stop> {
        let stamp = self.decide()?;
        let Thread { handle, shared, last, .. } = &mut *self.thread;
        *last = stamp.unwrap_or(*last);
        if self.is_marked {
            // Relaxed: a thread that does not know it looks at the catalog.
            shared.has_own.store(true, Ordering::Relaxed);
        }
        if let (Isolation::Linearizable, Some(stamp)) = (self.isolation, stamp) {
            handle.domain().clock().0.settle(stamp);
        }
        // What it has only read may not be on the disk yet, either.
        Ok(Ticket::new(shared, (*last).max(handle.seen()), value))
    }

    /// The stamp, if it has written something.
    fn decide(&mut self) -> Result<Option<u64>, Stop> {
        let Thread { handle, shared, writer, record, reads, .. } = &mut *self.thread;
        if let Some(conflict) = handle.doomed() {
            return Err(conflict.into());
        }
        // What it has made and linked nowhere, nobody finds: that is not to stay.
        if !handle.has_writes() {
            return Ok(None);
        }
        // SAFETY: the session is open. What `Map` has noted, it has found there with this number of
        // words.
        unsafe { reads.lock(handle, &shared.heap) }?;
        record::write(handle, &shared.heap, record);
        let (words, max) = (record.len(), writer.record_max());
        if words > max {
            return Err(Error::TooLarge { bytes: words * 8, max: max * 8 }.into());
        }
        self.is_open = false;
        // SAFETY: the session is open up to here, has written something, and has no conflict.
        let stamp = unsafe { protocol::commit(handle, writer, record) };
        Ok(Some(stamp.expect("a session without a conflict commits")))
    }

    /// Whether the catalog may not speak of objects of the program's own.
    pub(super) fn needs_mark(&self) -> bool {
        // Relaxed: see `commit_with`.
        !self.is_marked && !self.thread.shared.has_own.load(Ordering::Relaxed)
    }

    /// The catalog speaks of them, if this transaction commits.
    pub(super) fn set_marked(&mut self) {
        self.is_marked = true;
    }

    /// Locks an object; its words, to be changed.
    #[inline]
    pub(super) fn lock_words(&mut self, place: u64, words: usize) -> Result<&mut [u64], Stop> {
        let Thread { handle, shared, .. } = &mut *self.thread;
        with_words!(words, |W| {
            // SAFETY: the session is open until this transaction is dropped. Structures link to a
            // place only with the number of words that they allocated there; of a pointer of the
            // program's, `Heap::has_object` has said so.
            let data = unsafe { handle.try_lock(shared.heap.link::<W>(place)) }?;
            // SAFETY: the copy is this session's, and is borrowed with all of the transaction.
            Ok(unsafe { &mut *data })
        })
    }

    /// Locks an object that is not changed: no other changes it before this has committed.
    pub(super) fn lock_words_const(&mut self, place: u64, words: usize) -> Result<(), Stop> {
        let Thread { handle, shared, .. } = &mut *self.thread;
        Ok(with_words!(words, |W| {
            // SAFETY: the session is open until this transaction is dropped, and there is such an
            // object: structures have made it with this number of words, or `Heap::has_object` has
            // said so.
            unsafe { handle.try_lock_const(shared.heap.link::<W>(place)) }
        })?)
    }

    /// A new object with these words first, and zeros behind them. It stays if the transaction
    /// links it to another.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if the heap is, and [`Error::TooLarge`].
    pub(super) fn allocate(&mut self, first: &[u64]) -> Result<u64, Stop> {
        if first.len() > WORDS_MAX {
            return Err(Error::TooLarge { bytes: first.len() * 8, max: WORDS_MAX * 8 }.into());
        }
        self.thread.shared.heap.check_room(first.len())?;
        Ok(with_words!(first.len(), |W| {
            let mut words = [0; size_of::<W>() / 8];
            words[..first.len()].copy_from_slice(first);
            // SAFETY: the session is open until this transaction is dropped.
            self.thread.shared.heap.place(unsafe { self.thread.handle.alloc::<W>(words) })
        }))
    }

    /// The object ends with the commit. No other has its place any more then.
    pub(super) fn free_words(&mut self, place: u64, words: usize) -> Result<(), Stop> {
        let Thread { handle, shared, .. } = &mut *self.thread;
        with_words!(words, |W| {
            // SAFETY: the session is open until this transaction is dropped. Structures link to a
            // place only with the number of words that they allocated there, and have unlinked this
            // object; for one of the program's own, it is the contract of `free`.
            unsafe { handle.free(shared.heap.link::<W>(place)) }?;
        });
        Ok(())
    }
}

impl<'m, 's> Snapshot<'m, 's> {
    /// Begins at this moment, or at this thread's last commit if that is later.
    pub(super) fn begin(thread: &'m mut Thread<'s>, moment: Moment) -> Self {
        let clock = thread.handle.domain().clock();
        let time = match moment {
            Moment::Durable => 0,
            Moment::Present => clock.present(),
            Moment::Latest => clock.0.fresh(),
        };
        // SAFETY: no session is open: `Transaction` and `Snapshot` borrow the thread for as long as
        // theirs is. The time is the clock's, or 0.
        unsafe { thread.handle.begin_at_floor(time) };
        Self { thread }
    }
}

impl sealed::Objects for Transaction<'_, '_> {
    #[inline]
    fn object(&self, place: u64, words: usize) -> &[u64] {
        object(self.thread, place, words)
    }

    #[inline]
    fn note(&self, place: u64, words: usize) {
        self.thread.reads.note(place, words);
    }

    #[inline]
    fn heap(&self) -> &Heap {
        &self.thread.shared.heap
    }
}

impl sealed::Objects for Snapshot<'_, '_> {
    #[inline]
    fn object(&self, place: u64, words: usize) -> &[u64] {
        object(self.thread, place, words)
    }

    #[inline]
    fn note(&self, _: u64, _: usize) {}

    #[inline]
    fn heap(&self) -> &Heap {
        &self.thread.shared.heap
    }
}

impl Drop for Transaction<'_, '_> {
    fn drop(&mut self) {
        if self.is_open {
            // SAFETY: the session is open.
            unsafe { self.thread.handle.abort() };
        }
    }
}

impl Drop for Snapshot<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: the session is open up to here, and has written nothing.
        let ended = unsafe { self.thread.handle.commit() };
        debug_assert!(ended.is_ok(), "a session that only reads has no conflict");
    }
}

impl std::fmt::Debug for Transaction<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Snapshot<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

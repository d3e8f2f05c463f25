//! Sessions of a store: transactions, which write, and snapshots, which read.

use std::sync::atomic::Ordering;

use manycore::clock::Clock as _;
use manycore::session::RawSession;
use manycore::sync::mutation;

use super::pointer::{Ptr, typed};
use super::record;
use super::replayed::Replayed;
use super::shared::Thread;
pub use super::stop::Stop;
use super::terms::Isolation;
use super::ticket::Ticket;
use crate::Persist;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::heap::words::{WORDS_MAX, with_words};
use crate::protocol;

/// An open transaction. It reads as of its begin, and sees its own writes. If it is dropped without
/// a commit, for example by a panic, it has no effect.
pub struct Transaction<'m, 's> {
    side: Side<'m, 's>,
    isolation: Isolation,
    is_open: bool,
    /// Whether it has checked that the catalog mentions objects of the program's own.
    is_marked: bool,
}

/// Where a transaction works.
enum Side<'m, 's> {
    /// Beside others, on versions.
    Thread(&'m mut Thread<'s>),
    /// Alone, in recovery.
    Replay(&'m mut Replayed<'s>),
}

/// The time as of which a snapshot reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The latest time up to which all commits are on the disk.
    Durable,
    /// Now, by the clock of this CPU.
    Present,
    /// Now, by all CPUs' clocks: no commit that has returned is later.
    Latest,
}

/// A moment to read at.
pub struct Snapshot<'m, 's> {
    thread: &'m mut Thread<'s>,
}

/// Reads objects, in a transaction or a snapshot.
pub trait Session: sealed::Objects {
    /// The session's view of an object of the program's own: see [`Ptr`].
    ///
    /// Time: a few instructions more than an access to memory, if the object has no newer versions.
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
        let place = ptr.place(|place, words| self.has_object(place, words));
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

        /// Notes a read of which all words affect the caller's result. The transaction need not
        /// note objects that it changes itself, nor objects on a path that always lead to the same
        /// next object.
        fn note(&self, place: u64, words: usize);

        /// The heap in which they are.
        fn heap(&self) -> &Heap;

        /// Whether there can be an object of this number of words at an offset: see
        /// [`Heap::has_object`]. An operation that is run again has objects that the heap does not
        /// know yet.
        #[inline]
        fn has_object(&self, place: u64, words: usize) -> bool {
            self.heap().has_object(place, words)
        }

        /// Words of the object at a place, if there can be one.
        #[inline]
        fn object_words(&self, place: u64) -> Option<usize> {
            self.heap().object_words(place)
        }
    }
}

/// An object as this thread's session sees it.
#[inline]
fn object<'a>(thread: &'a Thread<'_>, place: u64, words: usize) -> &'a [u64] {
    with_words!(words, |W| {
        // SAFETY: the session is open until the `Transaction` or `Snapshot` is dropped. Structures
        // link to a place only with the number of words that they allocated there; for a pointer of
        // the program's, `Heap::has_object` has confirmed that there is such an object. A session's
        // view changes only by `try_lock` of the same session, which borrows the transaction
        // exclusively.
        unsafe { &*thread.handle.deref(thread.shared.heap.link::<W>(place)) }
    })
}

impl<'m, 's> Transaction<'m, 's> {
    pub(super) fn begin(thread: &'m mut Thread<'s>, isolation: Isolation) -> Self {
        thread.handle.wait_to_retry();
        let clock = thread.handle.domain().clock();
        let now = match isolation {
            Isolation::Linearizable => clock.0.fresh(),
            Isolation::Snapshot | Isolation::Serializable => clock.present(),
        };
        thread.reads.begin(isolation != Isolation::Snapshot);
        thread.calling.clear();
        // SAFETY: no session is open: `Transaction` and `Snapshot` borrow the thread for as long as
        // theirs is. The time is the clock's.
        unsafe { thread.handle.begin_at_floor(now) };
        Self { side: Side::Thread(thread), isolation, is_open: true, is_marked: false }
    }

    /// An operation that is run again. It ends without a commit.
    pub(super) fn replayed(replayed: &'m mut Replayed<'s>) -> Self {
        let (side, isolation) = (Side::Replay(replayed), Isolation::Serializable);
        Self { side, isolation, is_open: false, is_marked: false }
    }

    /// The thread of one that commits.
    fn thread(&mut self) -> &mut Thread<'s> {
        match &mut self.side {
            Side::Thread(thread) => thread,
            Side::Replay(_) => unreachable!("an operation cannot commit"),
        }
    }

    /// Runs `f` and commits.
    pub(super) fn run<R>(
        mut self,
        f: impl FnOnce(&mut Self) -> Result<R, Stop>,
    ) -> Result<Ticket<'s, R>, Stop> {
        let value = f(&mut self)?;
        self.commit_with(value)
    }

    /// Commits, and returns immediately. If no thread [waits](Ticket::wait_for) for the ticket, the
    /// commit is written with the next one for which a thread waits.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`] if another thread was faster, and [`Error::TooLarge`]: then the
    /// transaction has no effect.
    pub fn commit(self) -> Result<Ticket<'s, ()>, Stop> {
        self.commit_with(())
    }

    fn commit_with<R>(mut self, value: R) -> Result<Ticket<'s, R>, Stop> {
        let stamp = self.decide()?;
        let (is_marked, isolation) = (self.is_marked, self.isolation);
        let Thread { handle, shared, last, .. } = self.thread();
        *last = stamp.unwrap_or(*last);
        if is_marked {
            // Relaxed: a thread that does not know it reads the catalog.
            shared.has_own.store(true, Ordering::Relaxed);
        }
        if let (Isolation::Linearizable, Some(stamp)) = (isolation, stamp) {
            handle.domain().clock().0.settle(stamp);
        }
        // Data that the transaction has only read may not be on the disk yet, either.
        Ok(Ticket::new(shared, (*last).max(handle.seen()), value))
    }

    /// The stamp, if it has written something.
    fn decide(&mut self) -> Result<Option<u64>, Stop> {
        let is_ordered = self.isolation != Isolation::Snapshot;
        let Thread { handle, shared, writer, record, reads, calling, .. } = self.thread();
        if let Some(conflict) = handle.doomed() {
            return Err(conflict.into());
        }
        // Objects that the transaction has made and linked nowhere cannot be found; they are
        // removed.
        if !handle.has_writes() {
            return Ok(None);
        }
        // The mistake: what it has read may have changed.
        if !mutation!("commit-unvalidated") {
            // SAFETY: the session is open. Structures have noted only objects that they found there
            // with this number of words.
            unsafe { reads.lock(handle, &shared.heap) }?;
        }
        record::write(handle, &shared.heap, record);
        let (words, max) = (record.len(), writer.record_max());
        if words > max {
            return Err(Error::TooLarge { bytes: words * 8, max: max * 8 }.into());
        }
        if is_ordered {
            calling.push_shorter(record, max);
        }
        let (clock, has_read) = (handle.domain().clock(), !reads.is_empty());
        let decided = |stamp| {
            // A transaction that changes what this one has only read gets a later stamp, on
            // whatever CPU: so the order of stamps is an order in which all such transactions could
            // have run. The planted mistake: such a transaction's stamp may be earlier.
            if has_read && !mutation!("commit-unlocks-early") {
                clock.0.pass(stamp);
            }
        };
        // SAFETY: the session is open up to here, has written something, and has no conflict.
        let stamp = unsafe { protocol::commit(handle, writer, record, decided) };
        self.is_open = false;
        Ok(Some(stamp.expect("a session without a conflict commits")))
    }

    /// The transaction is a call of the operation of this number.
    pub(super) fn begin_call(&mut self, operation: u32, arguments: &[u8]) {
        self.thread().calling.begin(operation, arguments);
    }

    /// Returns the result of `read`, which may depend on more than the store: the time, a random
    /// number, a message. If the transaction is an [`Operation`](super::Operation) that recovery
    /// runs again, it returns the original result.
    ///
    /// # Errors
    ///
    /// [`Stop::Cancel`] if the original call read nothing of this size here.
    pub fn input<T: Persist>(&mut self, read: impl FnOnce() -> T) -> Result<T, Stop> {
        match &mut self.side {
            Side::Thread(thread) => {
                let input = read();
                thread.calling.note_input(input.as_bytes());
                Ok(input)
            }
            Side::Replay(replayed) => {
                let bytes = replayed.input(size_of::<T>())?;
                Ok(T::read_from_bytes(bytes).expect("as many bytes as the type has"))
            }
        }
    }

    /// As [`input`](Self::input), of bytes.
    pub(super) fn input_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Stop> {
        match &mut self.side {
            Side::Thread(thread) => thread.calling.note_input(bytes),
            Side::Replay(replayed) => bytes.copy_from_slice(replayed.input(bytes.len())?),
        }
        Ok(())
    }

    /// What keys of maps are hashed with.
    pub(super) fn seed(&self) -> u64 {
        match &self.side {
            Side::Thread(thread) => thread.shared.seed,
            Side::Replay(replayed) => replayed.seed(),
        }
    }

    /// Whether the catalog may not speak of objects of the program's own.
    pub(super) fn needs_mark(&self) -> bool {
        let is_known = match &self.side {
            // The caller may know the name from a thread whose commit has a later stamp. So an
            // operation, which recovery runs again in the order of stamps, reads the catalog, as a
            // replay does.
            Side::Thread(thread) if !thread.calling.is_calling() => {
                // Relaxed: see `commit_with`.
                thread.shared.has_own.load(Ordering::Relaxed)
            }
            _ => false,
        };
        !self.is_marked && !is_known
    }

    /// The catalog speaks of them, if this transaction commits.
    pub(super) fn set_marked(&mut self) {
        self.is_marked = true;
    }

    /// Locks an object; its words, to be changed.
    #[inline]
    pub(super) fn lock_words(&mut self, place: u64, words: usize) -> Result<&mut [u64], Stop> {
        let Thread { handle, shared, .. } = match &mut self.side {
            Side::Thread(thread) => &mut **thread,
            Side::Replay(replayed) => return Ok(replayed.lock(place, words)),
        };
        with_words!(words, |W| {
            // SAFETY: the session is open until this transaction is dropped. Structures link to a
            // place only with the number of words that they allocated there; of a pointer of the
            // program's, `Heap::has_object` has said so.
            let data = unsafe { handle.try_lock(shared.heap.link::<W>(place)) }?;
            // SAFETY: the copy is this session's, and is borrowed with all of the transaction.
            Ok(unsafe { &mut *data })
        })
    }

    /// Locks an object that this transaction does not change: no other transaction changes it
    /// before this one has committed.
    pub(super) fn lock_words_const(&mut self, place: u64, words: usize) -> Result<(), Stop> {
        let Side::Thread(thread) = &mut self.side else { return Ok(()) };
        let Thread { handle, shared, .. } = &mut **thread;
        Ok(with_words!(words, |W| {
            // SAFETY: the session is open until this transaction is dropped, and the object exists:
            // structures have made it with this number of words, or `Heap::has_object` has
            // confirmed it.
            unsafe { handle.try_lock_const(shared.heap.link::<W>(place)) }
        })?)
    }

    /// Creates an object with these words first, followed by zeros. It remains if the transaction
    /// links it to another object.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if the heap is, and [`Error::TooLarge`].
    pub(super) fn allocate(&mut self, first: &[u64]) -> Result<u64, Stop> {
        if first.len() > WORDS_MAX {
            return Err(Error::TooLarge { bytes: first.len() * 8, max: WORDS_MAX * 8 }.into());
        }
        let Thread { handle, shared, calling, .. } = match &mut self.side {
            Side::Thread(thread) => &mut **thread,
            Side::Replay(replayed) => return replayed.allocate(first),
        };
        shared.heap.check_room(first.len())?;
        let place = with_words!(first.len(), |W| {
            let mut words = [0; size_of::<W>() / 8];
            words[..first.len()].copy_from_slice(first);
            // SAFETY: the session is open until this transaction is dropped.
            shared.heap.place(unsafe { handle.alloc::<W>(words) })
        });
        calling.note_made(place);
        Ok(place)
    }

    /// Frees the object at the commit. No other object may refer to it any more then.
    pub(super) fn free_words(&mut self, place: u64, words: usize) -> Result<(), Stop> {
        let Thread { handle, shared, .. } = match &mut self.side {
            Side::Thread(thread) => &mut **thread,
            Side::Replay(replayed) => {
                replayed.free(place, words);
                return Ok(());
            }
        };
        with_words!(words, |W| {
            // SAFETY: the session is open until this transaction is dropped. Structures link to a
            // place only with the number of words that they allocated there, and have unlinked this
            // object; for an object of the program's own, the contract of `free` holds.
            unsafe { handle.free(shared.heap.link::<W>(place)) }?;
        });
        Ok(())
    }
}

impl<'m, 's> Snapshot<'m, 's> {
    /// Begins a snapshot as of now, but not before this thread's last commit.
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
        match &self.side {
            Side::Thread(thread) => object(thread, place, words),
            Side::Replay(replayed) => replayed.object(place, words),
        }
    }

    #[inline]
    fn note(&self, place: u64, words: usize) {
        if let Side::Thread(thread) = &self.side {
            thread.reads.note(place, words);
        }
    }

    #[inline]
    fn heap(&self) -> &Heap {
        match &self.side {
            Side::Thread(thread) => &thread.shared.heap,
            Side::Replay(replayed) => replayed.heap(),
        }
    }

    #[inline]
    fn has_object(&self, place: u64, words: usize) -> bool {
        match &self.side {
            Side::Thread(thread) => thread.shared.heap.has_object(place, words),
            Side::Replay(replayed) => replayed.has_object(place, words),
        }
    }

    #[inline]
    fn object_words(&self, place: u64) -> Option<usize> {
        match &self.side {
            Side::Thread(thread) => thread.shared.heap.object_words(place),
            Side::Replay(replayed) => replayed.object_words(place),
        }
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
            // SAFETY: `is_open` says that nothing has ended the session of this transaction yet.
            unsafe { self.thread().handle.abort() };
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

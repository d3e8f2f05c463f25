//! A thread's access: to one record at a time, and to all records as of one moment.

use core::fmt;

use super::ByteMap;
use super::error::Error;
use super::order::{self, From};
use super::state::Keeps;
use super::table::{Table, hash_of, is, table};
use super::tally::Change;
use crate::RawRwLock;
use crate::clock::{Clock, Ordo};
use crate::collections::versioned::UNTOLD;
use crate::mvrlu;
use crate::session::{Open, RawSession, View};

/// A thread's access to a [`ByteMap`].
///
/// The functions that get a record run in a session: while they run, old versions stay. In a
/// session that [`begin`](Self::begin) has begun, no other thread changes anything meanwhile.
pub struct Handle<'m, C: Clock = Ordo> {
    pub(super) map: &'m ByteMap<C>,
    pub(super) raw: mvrlu::Handle<'m, C>,
    pub(super) keeps: Keeps,
    /// How many records this thread has inserted, less those that it has removed, without the ones
    /// that the table counts already.
    untold: isize,
}

impl<'m, C: Clock> Handle<'m, C> {
    pub(super) fn new(map: &'m ByteMap<C>) -> Self {
        Self { map, raw: map.domain.register(), keeps: Keeps::NoOthers, untold: 0 }
    }

    /// Makes the handle the calling thread's own, after another thread has passed it on.
    pub fn adopt(&mut self) {
        self.raw.adopt();
    }

    /// Whether the handle is in a transaction of [`begin`](Self::begin).
    pub fn is_in_transaction(&self) -> bool {
        matches!(self.keeps, Keeps::Transaction(_))
    }

    /// Whether it keeps other threads from changing records.
    pub fn keeps_others_out(&self) -> bool {
        !matches!(self.keeps, Keeps::NoOthers)
    }

    /// The number of records: as [`ByteMap::len`], including the changes of the handle's
    /// transaction.
    pub fn len(&self) -> usize {
        self.map.len().saturating_add_signed(self.change().records)
    }

    /// Whether there is no record: as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all keys and values: as [`len`](Self::len).
    pub fn bytes(&self) -> usize {
        self.map.bytes().saturating_add_signed(self.change().bytes)
    }

    fn change(&self) -> Change {
        match &self.keeps {
            Keeps::Transaction(transaction) => transaction.change,
            _ => Change::default(),
        }
    }

    /// Reads in the transaction's session, or in one of its own.
    #[inline]
    fn read<R>(&mut self, view: View, f: impl FnOnce(&mvrlu::Handle<'m, C>, &Table) -> R) -> R {
        let root = self.map.root;
        if self.is_in_transaction() {
            // SAFETY: a transaction's session is open, of the map's domain.
            return f(&self.raw, unsafe { table(&self.raw, root) });
        }
        self.raw.end_dying();
        let open = Open::begin(&mut self.raw, view);
        // SAFETY: `open` has begun the session, of the map's domain.
        let result = f(&*open.handle, unsafe { table(&*open.handle, root) });
        open.end();
        result
    }

    /// Calls a function with the key's value, and returns its result. The function is not called if
    /// there is no value.
    #[inline]
    pub fn get<R>(&mut self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let hash = hash_of(&self.map.hasher, key);
        self.read(View::Latest, |session, table| {
            // SAFETY: the session is open, and objects that it has found stay until its end.
            unsafe {
                let (_, _, bucket) = table.find(session, hash);
                let (pair, ()) = bucket.find(session, hash, is(key))?;
                Some(f(pair.get().1))
            }
        })
    }

    /// Whether the key is there.
    pub fn contains(&mut self, key: &[u8]) -> bool {
        self.get(key, |_| ()).is_some()
    }

    /// Calls `f` with each record, as of one moment and in no order, until it returns false.
    pub fn for_each(&mut self, mut f: impl FnMut(&[u8], &[u8]) -> bool) {
        self.read(View::Snapshot, |session, table| {
            // SAFETY: the session is open, and objects that it has found stay until its end. It is
            // a snapshot, or no other thread changes anything meanwhile.
            unsafe {
                table.visit_all(session, |pair, ()| {
                    let (key, value) = pair.get();
                    f(key, value)
                });
            }
        });
    }

    /// Calls `f` with one of this many parts of the records, as of one moment, until `f` returns
    /// false. If all parts are read as of the same moment, each record is in exactly one part.
    ///
    /// # Panics
    ///
    /// If there is no part, or no such one.
    pub fn for_each_of(
        &mut self,
        part: usize,
        parts: usize,
        mut f: impl FnMut(&[u8], &[u8]) -> bool,
    ) {
        assert!(part < parts, "part {part} of {parts}: they count from 0");
        self.read(View::Snapshot, |session, table| {
            // SAFETY: the session is open, and objects that it has found stay until its end.
            unsafe { order::visit_part(session, table, part, parts, &mut f) };
        });
    }

    /// Calls a function with the first record after a position in the map's [order](super#order),
    /// and returns its result.
    pub fn next<R>(&mut self, from: From<'_>, f: impl FnOnce(&[u8], &[u8]) -> R) -> Option<R> {
        let hasher = &self.map.hasher;
        self.read(View::Snapshot, |session, table| {
            // SAFETY: the session is open, and objects that it has found stay until its end.
            unsafe {
                let pair = order::next(session, table, hasher, from)?;
                let (key, value) = pair.get();
                Some(f(key, value))
            }
        })
    }

    /// Waits until no other thread changes records, and prevents all others from changing any until
    /// [`let_others_in`](Self::let_others_in). This handle can go on.
    ///
    /// # Errors
    ///
    /// If it does so already.
    pub fn keep_others_out(&mut self) -> Result<(), Error> {
        if !matches!(self.keeps, Keeps::NoOthers) {
            return Err(Error::Already);
        }
        self.map.gate.acquire_write();
        self.keeps = Keeps::Others;
        Ok(())
    }

    /// The end of [`keep_others_out`](Self::keep_others_out).
    ///
    /// # Errors
    ///
    /// If it keeps no thread out, or is in a transaction, which ends in another way.
    pub fn let_others_in(&mut self) -> Result<(), Error> {
        match self.keeps {
            Keeps::NoOthers => Err(Error::NoTransaction),
            Keeps::Transaction(_) => Err(Error::Already),
            Keeps::Others => {
                self.open_gate();
                Ok(())
            }
        }
    }

    pub(super) fn open_gate(&mut self) {
        debug_assert!(!matches!(self.keeps, Keeps::NoOthers), "the gate is this handle's");
        self.keeps = Keeps::NoOthers;
        // SAFETY: the thread that keeps others out has acquired the gate, and has not released it.
        unsafe { self.map.gate.release_write() };
    }

    /// Waits before a change while another thread keeps writers out.
    #[inline]
    pub(super) fn pass_gate(&self) {
        if matches!(self.keeps, Keeps::NoOthers) {
            self.map.gate.acquire_read();
        }
    }

    /// After it.
    #[inline]
    pub(super) fn leave_gate(&self) {
        if matches!(self.keeps, Keeps::NoOthers) {
            // SAFETY: `pass_gate` has acquired it, with the same answer.
            unsafe { self.map.gate.release_read() };
        }
    }

    /// Adds the change of a commit to the table's count. Meanwhile no thread removes the table from
    /// the root, because that takes the gate.
    #[inline]
    pub(super) fn has_changed(&mut self, table: &Table, change: Change) {
        self.map.tally.add(change);
        self.untold += change.records;
        let untold = UNTOLD.min(table.buckets().cast_signed() / 64);
        if self.untold.unsigned_abs() > untold.unsigned_abs() {
            let told = core::mem::take(&mut self.untold);
            table.count(told);
            // SAFETY: the handle is in no session, and of the map's domain.
            unsafe { table.grow(&mut self.raw, told) };
        }
    }
}

impl<C: Clock> Drop for Handle<'_, C> {
    fn drop(&mut self) {
        if self.is_in_transaction() {
            _ = self.abort();
        }
        if matches!(self.keeps, Keeps::Others) {
            self.open_gate();
        }
        let untold = self.untold;
        if untold != 0 {
            self.read(View::Latest, |_, table| table.count(untold));
        }
        self.raw.end_dying();
    }
}

impl<C: Clock> fmt::Debug for Handle<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_in_transaction = self.is_in_transaction();
        f.debug_struct("Handle")
            .field("is_in_transaction", &is_in_transaction)
            .finish_non_exhaustive()
    }
}

//! Transactions on any records, during which no other thread changes anything.

use alloc::vec::Vec;

use super::error::Error;
use super::handle::Handle;
use super::state::{Keeps, Transaction};
use super::table::{Root, Table, new_table, table};
use super::tally::Change;
use crate::RawRwLock;
use crate::clock::Clock;
use crate::collections::versioned::Directory;
use crate::session::{Conflict, RawSession, View};

impl<C: Clock> Handle<'_, C> {
    /// Begins a transaction. From now on, until [`commit`](Self::commit) or [`abort`](Self::abort),
    /// all operations of this handle belong to it, and no other thread changes anything. Other
    /// threads read the old state.
    ///
    /// If a thread waits, in a transaction, for another thread's change, it waits for ever.
    ///
    /// # Errors
    ///
    /// If the handle keeps others out already.
    pub fn begin(&mut self) -> Result<(), Error> {
        if !matches!(self.keeps, Keeps::NoOthers) {
            return Err(Error::Already);
        }
        self.map.gate.acquire_write();
        self.open(Transaction::default());
        Ok(())
    }

    /// Does the same, if no other thread changes anything at the moment.
    ///
    /// # Errors
    ///
    /// If one does, or if the handle keeps others out already.
    pub fn try_begin(&mut self) -> Result<(), Error> {
        if !matches!(self.keeps, Keeps::NoOthers) {
            return Err(Error::Already);
        }
        if !self.map.gate.try_acquire_write() {
            return Err(Error::Busy);
        }
        self.open(Transaction::default());
        Ok(())
    }

    /// With the gate.
    fn open(&mut self, transaction: Transaction) {
        self.raw.end_dying();
        // SAFETY: the handle is in no session. The first call waits until the log has room, as
        // sessions do after that conflict; the second begins a session.
        unsafe {
            self.raw.back_off(Conflict::Full, 0);
            self.raw.begin(View::Latest);
        }
        self.keeps = Keeps::Transaction(transaction);
    }

    fn transaction(&mut self) -> Result<&mut Transaction, Error> {
        match &mut self.keeps {
            Keeps::Transaction(transaction) => Ok(transaction),
            _ => Err(Error::NoTransaction),
        }
    }

    /// Whether a change can be made: not, in a transaction that can only be aborted.
    #[inline]
    pub(super) fn look_for_failure(&self) -> Result<(), Error> {
        match &self.keeps {
            Keeps::Transaction(transaction) if transaction.has_failed => Err(Error::Failed),
            _ => Ok(()),
        }
    }

    /// The transaction can only be aborted.
    #[cold]
    pub(super) fn fail(&mut self) {
        if let Keeps::Transaction(transaction) = &mut self.keeps {
            transaction.has_failed = true;
        }
    }

    /// Ends the transaction: other threads see all of its changes at once.
    ///
    /// # Errors
    ///
    /// If there is no transaction, or if it has failed; then none of its changes have happened.
    pub fn commit(&mut self) -> Result<(), Error> {
        if self.transaction()?.has_failed {
            self.abort()?;
            return Err(Error::Failed);
        }
        // SAFETY: the transaction's session is open, and has met no conflict.
        unsafe { self.raw.commit() }.expect("a conflict is a failure");
        let transaction = self.close();
        self.map.tally.add(transaction.change);
        self.dismantle(transaction.replaced);
        self.end(transaction.is_inner);
        Ok(())
    }

    /// Ends the transaction as if it had not been.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn abort(&mut self) -> Result<(), Error> {
        self.transaction()?;
        // SAFETY: the transaction's session is open.
        unsafe { self.raw.abort() };
        let transaction = self.close();
        for (table, told) in transaction.told {
            // SAFETY: tables that this transaction made are freed below; the others belong to the
            // map.
            unsafe { &*table }.count(-told);
        }
        let is_left = |table: &*const Table| !transaction.made.contains(table);
        for (table, number) in transaction.split_off.iter().filter(|(table, _)| is_left(table)) {
            // SAFETY: the handle is in no session, and of the map's domain.
            unsafe { (**table).split_off_again(&mut self.raw, *number) };
        }
        self.dismantle(transaction.made);
        self.end(transaction.is_inner);
        Ok(())
    }

    /// The session has ended; this handle still has the gate.
    fn close(&mut self) -> Transaction {
        match core::mem::replace(&mut self.keeps, Keeps::Others) {
            Keeps::Transaction(transaction) => transaction,
            _ => unreachable!("the callers have looked"),
        }
    }

    fn end(&mut self, is_inner: bool) {
        self.raw.end_dying();
        if !is_inner {
            self.open_gate();
        }
    }

    /// Frees tables that no session will find any more.
    fn dismantle(&mut self, tables: Vec<*const Table>) {
        for table in tables {
            // SAFETY: it is from a box of `new_table`, which no other thread frees: a commit has
            // removed it from the root, or the transaction that put it there was aborted. The
            // handle is in no session; each pair is in one entry.
            unsafe {
                let table = alloc::boxed::Box::from_raw(table.cast_mut());
                Directory::dismantle(table, &mut self.raw, |session, pair, ()| {
                    session.free_pair(pair)
                });
            }
        }
    }

    /// In the transaction, the table has changed by this.
    #[cold]
    pub(super) fn has_changed_within(&mut self, table: *const Table, change: Change) {
        let Keeps::Transaction(transaction) = &mut self.keeps else { return };
        transaction.change = transaction.change.and(change);
        if change.records == 0 {
            return;
        }
        match transaction.told.iter_mut().find(|(of, _)| *of == table) {
            Some((_, told)) => *told += change.records,
            None => transaction.told.push((table, change.records)),
        }
        // SAFETY: the session is open, and has found the table.
        let grown = unsafe {
            (*table).count(change.records);
            if self.raw.has_room() { (*table).grow_within(&mut self.raw) } else { Ok(None) }
        };
        match grown {
            Ok(split_off) => transaction.split_off.extend(split_off.map(|number| (table, number))),
            Err(_) => transaction.has_failed = true,
        }
    }

    /// Takes all records out, at one moment.
    ///
    /// # Errors
    ///
    /// If the transaction has failed.
    pub fn clear(&mut self) -> Result<(), Error> {
        match self.keeps {
            Keeps::Transaction(_) => return self.clear_within(),
            Keeps::NoOthers => self.begin()?,
            Keeps::Others => self.open(Transaction { is_inner: true, ..Transaction::default() }),
        }
        self.clear_within()?;
        self.commit()
    }

    /// Restarts the transaction's session. Its changes have to be discarded in any case; otherwise
    /// a thread that has found the table just before its removal could see them for a moment.
    fn take_back(&mut self) {
        // SAFETY: the transaction's session is open, and another one begins when it has ended.
        unsafe {
            self.raw.abort();
            self.raw.end_dying();
            self.raw.begin(View::Latest);
        }
        if let Keeps::Transaction(transaction) = &mut self.keeps {
            for (table, told) in transaction.told.drain(..) {
                // SAFETY: tables stay until the transaction's end.
                unsafe { &*table }.count(-told);
            }
            transaction.replaced.clear();
            transaction.replaced.extend(&transaction.made);
        }
    }

    fn clear_within(&mut self) -> Result<(), Error> {
        self.look_for_failure()?;
        self.take_back();
        let (root, map) = (self.map.root, self.map);
        // SAFETY: the transaction's session is open, of the map's domain. `try_lock` returns the
        // session's copy.
        let old = unsafe {
            let old = core::ptr::from_ref(table(&self.raw, root));
            if !self.raw.has_room() {
                self.fail();
                return Err(Error::TooLarge);
            }
            let Ok(new) = self.raw.try_lock::<Root>(root) else {
                self.fail();
                return Err(Error::Failed);
            };
            (*new).table = new_table(map.room, map.hasher.clone());
            let new = (*new).table;
            self.transaction()?.made.push(new);
            old
        };
        let transaction = self.transaction()?;
        transaction.replaced.push(old);
        // No other thread changes them meanwhile.
        transaction.change = Change {
            records: -map.tally.records().cast_signed(),
            bytes: -map.tally.bytes().cast_signed(),
        };
        Ok(())
    }
}

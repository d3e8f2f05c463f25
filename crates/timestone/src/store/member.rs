//! A thread's part in a store.

use manycore::session::{Conflict, RawSession};

use super::calling::Known;
use super::operation::{Arguments, Operation, Registered};
use super::shared::{Shared, Thread};
use super::terms::{Durability, Isolation, Terms};
use super::ticket::Ticket;
use super::transaction::{Moment, Snapshot, Stop, Transaction};
use crate::error::{Error, Result};

/// A thread's handle of a [`Store`](super::Store). It stays on its thread.
pub struct Member<'s> {
    thread: Thread<'s>,
}

impl<'s> Member<'s> {
    pub(super) fn new(shared: &'s Shared) -> Result<Self> {
        Ok(Self { thread: Thread::new(shared)? })
    }

    /// Runs `f` in a transaction, again after a conflict with another thread, and commits it.
    /// Returns as [`Options::durability`](super::Options::durability) says.
    ///
    /// # Errors
    ///
    /// The errors of `f`: then the transaction has no effect. The errors of the commit. With
    /// [`Error::TooLarge`], and with [`Error::Full`] of the heap, the transaction has no effect
    /// either; with others it has taken effect, but may not be on the disk.
    pub fn run<R>(
        &mut self,
        f: impl FnMut(&mut Transaction<'_, 's>) -> Result<R, Stop>,
    ) -> Result<R> {
        self.run_with(Terms::default(), f)
    }

    /// As [`run`](Self::run), with these terms: a [`Durability`], an [`Isolation`], or both.
    ///
    /// # Errors
    ///
    /// As of [`run`](Self::run).
    pub fn run_with<R>(
        &mut self,
        terms: impl Into<Terms>,
        f: impl FnMut(&mut Transaction<'_, 's>) -> Result<R, Stop>,
    ) -> Result<R> {
        let terms: Terms = terms.into();
        let settings = &self.thread.shared.settings;
        let ticket = self.transact(terms.isolation.unwrap_or(settings.isolation), f)?;
        ticket.wait_for(terms.durability.unwrap_or(settings.durability))?;
        Ok(ticket.into_value())
    }

    /// Runs `f` in a transaction, commits it, and returns immediately. The ticket tells threads and
    /// futures when the commit is on the disk. A thread may have many pending commits.
    ///
    /// # Errors
    ///
    /// The errors of `f`, and [`Error::TooLarge`] and [`Error::Full`] of the heap: then the
    /// transaction has no effect.
    pub fn submit<R>(
        &mut self,
        f: impl FnMut(&mut Transaction<'_, 's>) -> Result<R, Stop>,
    ) -> Result<Ticket<'s, R>> {
        self.submit_with(Terms::default(), f)
    }

    /// As [`submit`](Self::submit), with these terms. If no thread waits for the commit, it is
    /// written after the window of [`Durability::Eventual`], if the terms have one, and otherwise
    /// after [`Options::window`](super::Options::window).
    ///
    /// # Errors
    ///
    /// As of [`submit`](Self::submit).
    pub fn submit_with<R>(
        &mut self,
        terms: impl Into<Terms>,
        f: impl FnMut(&mut Transaction<'_, 's>) -> Result<R, Stop>,
    ) -> Result<Ticket<'s, R>> {
        let terms: Terms = terms.into();
        let settings = &self.thread.shared.settings;
        let ticket = self.transact(terms.isolation.unwrap_or(settings.isolation), f)?;
        ticket.leave(match terms.durability {
            Some(Durability::Eventual { window }) => window,
            _ => settings.window,
        });
        Ok(ticket)
    }

    /// Calls an operation in a transaction and commits it; calls it again after a conflict with
    /// another thread. As [`run`](Self::run), but at least
    /// [`Serializable`](Isolation::Serializable).
    ///
    /// # Errors
    ///
    /// As of [`run`](Self::run); [`Error::UnknownOperation`] if
    /// [`Options::operations`](super::Options::operations) does not have it.
    pub fn call<A, R>(&mut self, operation: &Operation<A, R>, arguments: &A) -> Result<R>
    where
        A: Arguments + ?Sized,
    {
        self.call_with(Terms::default(), operation, arguments)
    }

    /// As [`call`](Self::call), with these terms. With [`Isolation::Snapshot`] the journal gets the
    /// written words, because the call could not be run again.
    ///
    /// # Errors
    ///
    /// As of [`call`](Self::call).
    pub fn call_with<A, R>(
        &mut self,
        terms: impl Into<Terms>,
        operation: &Operation<A, R>,
        arguments: &A,
    ) -> Result<R>
    where
        A: Arguments + ?Sized,
    {
        let (terms, number) = self.call_terms(terms.into(), operation)?;
        self.run_with(terms, |tx| {
            tx.begin_call(number, arguments.as_bytes());
            operation.run(tx, arguments)
        })
    }

    /// As [`call_with`](Self::call_with), and returns at once: see [`submit`](Self::submit).
    ///
    /// # Errors
    ///
    /// As of [`submit`](Self::submit) and of [`call`](Self::call).
    pub fn submit_call<A, R>(
        &mut self,
        terms: impl Into<Terms>,
        operation: &Operation<A, R>,
        arguments: &A,
    ) -> Result<Ticket<'s, R>>
    where
        A: Arguments + ?Sized,
    {
        let run = |tx: &mut Transaction<'_, 's>| operation.run(tx, arguments);
        self.submit_bytes(terms.into(), operation, arguments.as_bytes(), run)
    }

    /// As [`submit`](Self::submit), for an operation behind [`Registered`], whose work `run` does.
    pub(super) fn submit_bytes<R>(
        &mut self,
        terms: Terms,
        operation: &dyn Registered,
        arguments: &[u8],
        mut run: impl FnMut(&mut Transaction<'_, 's>) -> Result<R, Stop>,
    ) -> Result<Ticket<'s, R>> {
        let (terms, number) = self.call_terms(terms, operation)?;
        self.submit_with(terms, |tx| {
            tx.begin_call(number, arguments);
            run(tx)
        })
    }

    /// The terms of a call of an operation, and the operation's number.
    fn call_terms(&self, terms: Terms, called: &dyn Registered) -> Result<(Terms, u32)> {
        let Shared { settings, operations, .. } = self.thread.shared;
        let isolation = terms.isolation.unwrap_or(match settings.isolation {
            Isolation::Snapshot => Isolation::Serializable,
            isolation => isolation,
        });
        let number = Known::number(operations, called.name(), called.version())?;
        Ok((Terms { isolation: Some(isolation), ..terms }, number))
    }

    /// Begins a transaction that ends by [`Transaction::commit`], for code that cannot be a
    /// closure. After a conflict, the caller [backs off](Self::back_off) and begins another one.
    ///
    /// # Errors
    ///
    /// [`Error::Poisoned`]; also the devices' errors, if earlier commits have to be written first
    /// to make room.
    pub fn begin(&mut self, isolation: Isolation) -> Result<Transaction<'_, 's>> {
        self.thread.make_room()?;
        Ok(Transaction::begin(&mut self.thread, isolation))
    }

    /// Waits after a conflict. The more attempts there were, the longer it waits.
    ///
    /// # Errors
    ///
    /// As of [`begin`](Self::begin).
    pub fn back_off(&mut self, conflict: Conflict, attempts: u32) -> Result<()> {
        // Versions that are not on the disk are kept.
        if conflict == Conflict::Full {
            self.thread.shared.flusher.sync()?;
        }
        // SAFETY: the transaction has ended: it has borrowed this member.
        unsafe { self.thread.handle.back_off(conflict, attempts) };
        Ok(())
    }

    /// Reads as of one moment. All commits up to it are on the disk; it is not before this thread's
    /// last commit.
    pub fn read<R>(&mut self, f: impl FnOnce(&Snapshot<'_, 's>) -> R) -> R {
        f(&self.begin_read())
    }

    /// As [`read`](Self::read), for code that cannot be a closure: the moment lasts until the
    /// snapshot is dropped.
    pub fn begin_read(&mut self) -> Snapshot<'_, 's> {
        let in_memory = self.thread.shared.flusher.is_in_memory();
        let moment = if in_memory { Moment::Present } else { Moment::Durable };
        Snapshot::begin(&mut self.thread, moment)
    }

    /// Reads the present state, including commits that are not on the disk yet and that a crash may
    /// undo. It waits for the clocks of all CPUs, so it misses no commit that has returned.
    pub fn read_latest<R>(&mut self, f: impl FnOnce(&Snapshot<'_, 's>) -> R) -> R {
        f(&self.begin_read_latest())
    }

    /// As [`read_latest`](Self::read_latest), until the snapshot is dropped.
    pub fn begin_read_latest(&mut self) -> Snapshot<'_, 's> {
        Snapshot::begin(&mut self.thread, Moment::Latest)
    }

    fn transact<R>(
        &mut self,
        isolation: Isolation,
        mut f: impl FnMut(&mut Transaction<'_, 's>) -> Result<R, Stop>,
    ) -> Result<Ticket<'s, R>> {
        let mut attempts = 0;
        loop {
            let ended = self.begin(isolation)?.run(&mut f);
            match ended {
                Ok(ticket) => return Ok(ticket),
                Err(Stop::Conflict(conflict)) => self.back_off(conflict, attempts)?,
                Err(Stop::Cancel) => return Err(Error::Cancelled),
                Err(Stop::Error(error)) => return Err(error),
            }
            attempts += 1;
        }
    }
}

impl std::fmt::Debug for Member<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("last", &self.thread.last).finish_non_exhaustive()
    }
}

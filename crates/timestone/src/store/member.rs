//! A thread's part in a store.

use manycore::clock::Clock as _;
use manycore::session::{Conflict, RawSession};

use super::flusher::{Flusher, Progress};
use super::shared::{Shared, Thread};
use super::terms::{Durability, Isolation, Terms};
use super::ticket::Ticket;
use super::transaction::{Moment, Snapshot, Stop, Transaction};
use crate::error::{Error, Result};

/// A thread that takes part in a [`Store`](super::Store). It stays on its thread.
pub struct Member<'s> {
    thread: Thread<'s>,
    /// The stamp of this thread's last commit.
    last: u64,
}

impl<'s> Member<'s> {
    pub(super) fn new(shared: &'s Shared) -> Result<Self> {
        Ok(Self { thread: Thread::new(shared)?, last: 0 })
    }

    /// Runs `f` in a transaction, again after a conflict with another thread, and commits it.
    /// Returns as [`Options::durability`](super::Options::durability) says.
    ///
    /// # Errors
    ///
    /// Those of `f`, after which the transaction is as if it had not been. Those of the commit:
    /// with [`Error::TooLarge`] and [`Error::Full`] of the heap it has not happened either; with
    /// others it has, and its way to the disk has failed.
    pub fn run<R>(
        &mut self,
        f: impl FnMut(&mut Transaction<'_, 's>) -> Result<R, Stop>,
    ) -> Result<R> {
        self.run_with(Terms::default(), f)
    }

    /// As [`run`](Self::run), on these terms: a [`Durability`], an [`Isolation`], or both.
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
        let options = &self.thread.shared.options;
        let durability = terms.durability.unwrap_or(options.durability);
        let (value, stamp) = self.transact(terms.isolation.unwrap_or(options.isolation), f)?;
        self.bring(stamp, durability)?;
        Ok(value)
    }

    /// Returns when a commit has come as far as it is to.
    fn bring(&self, stamp: u64, durability: Durability) -> Result<()> {
        let Shared { flusher, options, .. } = self.thread.shared;
        match durability {
            Durability::Eventual { window } => flusher.note(window),
            _ if flusher.is_in_memory() => self.show(stamp),
            Durability::Durable => flusher.wait(stamp)?,
            Durability::Buffered => {
                flusher.wait_until(Progress::Written, stamp)?;
                flusher.note(options.window);
            }
        }
        Ok(())
    }

    /// Lets every transaction that begins afterwards see a commit that no file has: as if it had
    /// got to one.
    fn show(&self, stamp: u64) {
        let Shared { flusher, options, .. } = self.thread.shared;
        flusher.domain.clock().0.settle(stamp);
        flusher.note(options.window);
    }

    /// Runs `f` in a transaction and commits it, and returns at once: the ticket says when it is on
    /// the disk, to threads and to futures. A thread may have many commits on their way.
    ///
    /// # Errors
    ///
    /// Those of `f`, and [`Error::TooLarge`] and [`Error::Full`] of the heap: the transaction is as
    /// if it had not been.
    pub fn submit<R>(
        &mut self,
        f: impl FnMut(&mut Transaction<'_, 's>) -> Result<R, Stop>,
    ) -> Result<Ticket<'s, R>> {
        self.submit_with(Terms::default(), f)
    }

    /// As [`submit`](Self::submit), on these terms. Of a durability, the window of
    /// [`Durability::Eventual`] counts: if nobody waits for the commit, it is written after that
    /// rather than [`Options::window`](super::Options::window).
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
        let Shared { flusher, options, .. } = self.thread.shared;
        let (value, stamp) = self.transact(terms.isolation.unwrap_or(options.isolation), f)?;
        if flusher.is_in_memory() {
            self.show(stamp);
            return Ok(Ticket::new(flusher, 0, value));
        }
        flusher.note(match terms.durability {
            Some(Durability::Eventual { window }) => window,
            _ => options.window,
        });
        Ok(Ticket::new(flusher, stamp, value))
    }

    /// Reads at one moment, up to which all commits are on the disk; or at this thread's last
    /// commit, if that is later.
    pub fn read<R>(&mut self, f: impl FnOnce(&Snapshot<'_, 's>) -> R) -> R {
        let in_memory = self.thread.shared.flusher.is_in_memory();
        let moment = if in_memory { Moment::Present } else { Moment::Durable };
        f(&Snapshot::begin(&mut self.thread, moment))
    }

    /// Reads at the present moment, also what is not on the disk yet: a crash may take that back.
    /// Waits for the clocks of all CPUs, so that no commit that has returned is missed.
    pub fn read_latest<R>(&mut self, f: impl FnOnce(&Snapshot<'_, 's>) -> R) -> R {
        f(&Snapshot::begin(&mut self.thread, Moment::Latest))
    }

    fn transact<R>(
        &mut self,
        isolation: Isolation,
        mut f: impl FnMut(&mut Transaction<'_, 's>) -> Result<R, Stop>,
    ) -> Result<(R, u64)> {
        let mut attempts = 0;
        loop {
            self.thread.make_room()?;
            let stopped = match Transaction::begin(&mut self.thread, isolation).run(&mut f) {
                Ok((value, stamp)) => {
                    self.last = stamp.unwrap_or(self.last);
                    if let (Isolation::Linearizable, Some(stamp)) = (isolation, stamp) {
                        self.thread.handle.domain().clock().0.settle(stamp);
                    }
                    // What it has only read may not be on the disk yet, either.
                    return Ok((value, self.last.max(self.thread.handle.seen())));
                }
                Err(stopped) => stopped,
            };
            match stopped {
                Stop::Conflict(conflict) => {
                    // Versions that are not on the disk are kept.
                    if conflict == Conflict::Full {
                        self.thread.shared.flusher.sync()?;
                    }
                    // SAFETY: the transaction has ended.
                    unsafe { self.thread.handle.back_off(conflict, attempts) };
                    attempts += 1;
                }
                Stop::Cancel => return Err(Error::Cancelled),
                Stop::Error(error) => return Err(error),
            }
        }
    }
}

impl std::fmt::Debug for Member<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("last", &self.last).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Flusher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flusher").field("durable", &self.durable()).finish_non_exhaustive()
    }
}

//! A thread's access to a space: snapshots and transactions.

use core::fmt;
use core::ptr::NonNull;

use super::identity::check;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::mvrlu;
use crate::session::{Conflict, Open, RawSession, Sessions, View};

/// A thread's access to a [`Space`](super::Space). It is not `Send`; where that is needed, use
/// [`Space::with`](super::Space::with).
pub struct Handle<'s, M: Sessions + 'static = mvrlu::Domain> {
    pub(super) raw: M::Handle<'s>,
    /// Tells the space from others.
    domain: NonNull<M>,
}

/// How often a transaction is run, and what it sees.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    attempts: u32,
    is_serializable: bool,
}

/// A transaction has met as many conflicts as its [`Limit`] allows attempts. None of its changes
/// have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GaveUp {
    /// How often it was run.
    pub attempts: u32,
    /// The last conflict.
    pub conflict: Conflict,
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a transaction was run {} times, and met a conflict each time, the last one: {:?}",
            self.attempts, self.conflict
        )
    }
}

impl core::error::Error for GaveUp {}

impl Limit {
    /// Any number of attempts.
    pub const NONE: Self = Self { attempts: u32::MAX, is_serializable: false };

    /// Limits a transaction to `attempts` attempts, of which there is at least one.
    #[must_use]
    pub const fn attempts(attempts: u32) -> Self {
        Self { attempts, ..Self::NONE }
    }

    /// Makes the result as if transactions ran one after the other. That includes other
    /// transactions that read what this one changes and change what it reads (no write skew, no
    /// phantoms). Everything that the transaction has read is locked when it commits. This costs a
    /// lock for each leaf or bucket that was read, and conflicts with transactions that change
    /// them.
    #[must_use]
    pub const fn serializable(self) -> Self {
        Self { is_serializable: true, ..self }
    }
}

impl<'s, M: Sessions + 'static> Handle<'s, M> {
    pub(super) fn new(domain: &'s M) -> Self {
        Self { raw: domain.register(), domain: NonNull::from(domain) }
    }

    /// Whether this is the domain.
    pub(super) fn check(&self, domain: &M) {
        check(self.domain, domain);
    }

    /// Reads any collections of the space as they are at one moment. Meanwhile, the versions that
    /// it may read are kept.
    pub fn snapshot<R>(&mut self, f: impl FnOnce(&Snapshot<'_, 's, M>) -> R) -> R {
        self.raw.end_dying();
        let open = Open::begin(&mut self.raw, View::Snapshot);
        let result = f(&Snapshot { session: &*open.handle, domain: self.domain });
        open.end();
        result
    }

    /// Reads and changes any collections of the space; other threads see all of its changes or
    /// none. The transaction sees one moment, and its own changes. It runs again after each
    /// conflict, with growing pauses, so that side effects of `f` are repeated.
    ///
    /// # Panics
    ///
    /// Under MV-RLU, if the transaction's changes fill a whole log: see
    /// [`Config::segments_max`](crate::mvrlu::Config::segments_max).
    pub fn transact<'m, R>(
        &mut self,
        f: impl FnMut(&mut Transaction<'_, 's, 'm, M>) -> Result<R, Conflict>,
    ) -> R {
        match self.transact_with(Limit::NONE, f) {
            Ok(result) => result,
            Err(gave_up) => panic!("{gave_up}"),
        }
    }

    /// The same, once.
    ///
    /// # Errors
    ///
    /// The result of `f`. If `f` has met a conflict and returns something else, the result is the
    /// conflict: the transaction cannot commit, whatever `f` returns.
    ///
    /// # Panics
    ///
    /// As of [`transact`](Self::transact).
    pub fn attempt<'m, R>(
        &mut self,
        f: impl FnOnce(&mut Transaction<'_, 's, 'm, M>) -> Result<R, Conflict>,
    ) -> Result<R, Conflict> {
        self.run(f, false)
    }

    /// The same, within a limit.
    ///
    /// # Errors
    ///
    /// If there were as many conflicts as the limit allows attempts.
    ///
    /// # Panics
    ///
    /// As of [`transact`](Self::transact).
    pub fn transact_with<'m, R>(
        &mut self,
        limit: Limit,
        mut f: impl FnMut(&mut Transaction<'_, 's, 'm, M>) -> Result<R, Conflict>,
    ) -> Result<R, GaveUp> {
        let mut attempts = 0;
        loop {
            match self.run(&mut f, limit.is_serializable) {
                Ok(result) => return Ok(result),
                Err(conflict) if attempts + 1 >= limit.attempts && limit.attempts < u32::MAX => {
                    return Err(GaveUp { attempts: attempts + 1, conflict });
                }
                // SAFETY: `run` has ended its session before it returns a conflict.
                Err(conflict) => unsafe { self.raw.back_off(conflict, attempts) },
            }
            attempts = attempts.saturating_add(1);
        }
    }

    fn run<'m, R>(
        &mut self,
        f: impl FnOnce(&mut Transaction<'_, 's, 'm, M>) -> Result<R, Conflict>,
        is_serializable: bool,
    ) -> Result<R, Conflict> {
        let domain = self.domain;
        self.raw.end_dying();
        let open = Open::begin(&mut self.raw, View::Snapshot);
        let mut transaction = Transaction::new(&mut *open.handle, domain, is_serializable);
        // Dropped with an error, the session is aborted.
        let result = f(&mut transaction)?;
        let changed = transaction.end()?;
        open.commit()?;
        for map in changed {
            // SAFETY: the session has ended, and the map is one of the handle's domain, which the
            // transaction has read.
            unsafe { map.tell(&mut self.raw) };
        }
        Ok(result)
    }
}

opaque! { [M: Sessions] Handle<'_, M>, "Handle"; }

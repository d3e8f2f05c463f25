//! Commits on their way to the disk, for threads and for futures.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use manycore::clock::Clock as _;

use super::flusher::{Flusher, Progress};
use super::shared::Shared;
use super::terms::Durability;
use super::wakers::WaiterKey;
use crate::error::Result;

/// A commit on its way to the disk.
///
/// A pending commit. A thread [waits](Self::wait) for it; a task of any executor awaits it, and
/// gets the transaction's result. Dropping the ticket does not undo the commit.
#[must_use = "a commit may not be on the disk before `wait` has returned"]
pub struct Ticket<'s, R> {
    shared: &'s Shared,
    stamp: u64,
    value: R,
}

/// A task's wait for a [`Ticket`]. Dropping it ends the wait; the commit continues.
#[must_use = "futures do nothing unless they are polled"]
pub struct Committing<'s, R> {
    flusher: &'s Flusher,
    stamp: u64,
    /// None once it was returned.
    value: Option<R>,
    waiter: Option<WaiterKey>,
}

impl<'s, R> Ticket<'s, R> {
    pub(super) fn new(shared: &'s Shared, stamp: u64, value: R) -> Self {
        Self { shared, stamp, value }
    }

    /// What the transaction has returned.
    pub fn value(&self) -> &R {
        &self.value
    }

    /// What the transaction has returned; drops the ticket, and the commit goes on.
    pub fn into_value(self) -> R {
        self.value
    }

    /// The commit's position in the order of all commits: see [`Store::wait`](super::Store::wait).
    /// For a transaction that has only read, the position of the last commit that it has seen.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Whether the commit is on the disk.
    pub fn is_durable(&self) -> bool {
        self.shared.flusher.has(self.stamp)
    }

    /// Returns when the commit, and with it every earlier one, is on the disk.
    ///
    /// # Errors
    ///
    /// Those of the devices, or [`Error::Poisoned`](crate::Error::Poisoned).
    pub fn wait(&self) -> Result<()> {
        self.shared.flusher.wait(self.stamp)
    }

    /// Returns when the commit has come as far as this durability says.
    ///
    /// # Errors
    ///
    /// As of [`wait`](Self::wait).
    pub fn wait_for(&self, durability: Durability) -> Result<()> {
        let Shared { flusher, settings, .. } = self.shared;
        match durability {
            Durability::Eventual { window } => flusher.note(window),
            _ if flusher.is_in_memory() => self.leave(settings.window),
            Durability::Durable => flusher.wait(self.stamp)?,
            Durability::Buffered => {
                flusher.wait_until(Progress::Written, self.stamp)?;
                flusher.note(settings.window);
            }
        }
        Ok(())
    }

    /// Requires that the commit is written within a window. In memory, waits until every
    /// transaction that begins afterwards sees the commit.
    pub(super) fn leave(&self, window: Duration) {
        let flusher = &self.shared.flusher;
        if flusher.is_in_memory() {
            flusher.domain.clock().0.settle(self.stamp);
        }
        flusher.note(window);
    }
}

impl<'s, R> IntoFuture for Ticket<'s, R> {
    type Output = Result<R>;
    type IntoFuture = Committing<'s, R>;

    fn into_future(self) -> Committing<'s, R> {
        let Self { shared, stamp, value } = self;
        Committing { flusher: &shared.flusher, stamp, value: Some(value), waiter: None }
    }
}

impl<R> Future for Committing<'_, R> {
    type Output = Result<R>;

    /// # Panics
    ///
    /// If it was ready before.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<R>> {
        let this = self.get_mut();
        let value = |value: &mut Option<R>| value.take().expect("a future is not polled when done");
        match this.flusher.poll(this.stamp, &mut this.waiter, context.waker()) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(done) => {
                let value = value(&mut this.value);
                Poll::Ready(done.map(|()| value))
            }
        }
    }
}

// Nothing is pinned: the value is only kept.
impl<R> Unpin for Committing<'_, R> {}

impl<R> Drop for Committing<'_, R> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.flusher.wakers.leave(waiter);
        }
    }
}

impl<R: fmt::Debug> fmt::Debug for Ticket<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stamp, value) = (&self.stamp, &self.value);
        f.debug_struct("Ticket").field("stamp", stamp).field("value", value).finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for Committing<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committing").field("stamp", &self.stamp).finish_non_exhaustive()
    }
}

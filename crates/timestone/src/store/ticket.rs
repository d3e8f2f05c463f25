//! Commits on their way to the disk, for threads and for futures.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::flusher::Flusher;
use super::wakers::Place;
use crate::error::Result;

/// A commit on its way to the disk.
///
/// A thread [waits](Self::wait) for it; a task of any executor awaits it, and gets what the
/// transaction has returned. To drop it takes nothing back.
#[derive(Debug)]
#[must_use = "a commit may not be on the disk before `wait` has returned"]
pub struct Ticket<'s, R> {
    flusher: &'s Flusher,
    stamp: u64,
    value: R,
}

/// A task's wait for a [`Ticket`]. Dropped, it leaves nothing behind, and the commit goes on.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct Committing<'s, R> {
    flusher: &'s Flusher,
    stamp: u64,
    /// None once it was returned.
    value: Option<R>,
    place: Option<Place>,
}

impl<'s, R> Ticket<'s, R> {
    pub(super) fn new(flusher: &'s Flusher, stamp: u64, value: R) -> Self {
        Self { flusher, stamp, value }
    }

    /// What the transaction has returned.
    pub fn value(&self) -> &R {
        &self.value
    }

    /// Whether the commit is on the disk.
    pub fn is_durable(&self) -> bool {
        self.flusher.durable() >= self.stamp
    }

    /// Returns when the commit, and with it every earlier one, is on the disk.
    ///
    /// # Errors
    ///
    /// Those of the devices, or [`Error::Poisoned`](crate::Error::Poisoned).
    pub fn wait(&self) -> Result<()> {
        self.flusher.wait(self.stamp)
    }
}

impl<'s, R> IntoFuture for Ticket<'s, R> {
    type Output = Result<R>;
    type IntoFuture = Committing<'s, R>;

    fn into_future(self) -> Committing<'s, R> {
        let Self { flusher, stamp, value } = self;
        Committing { flusher, stamp, value: Some(value), place: None }
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
        match this.flusher.poll(this.stamp, &mut this.place, context.waker()) {
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
        if let Some(place) = self.place.take() {
            self.flusher.wakers.leave(place);
        }
    }
}

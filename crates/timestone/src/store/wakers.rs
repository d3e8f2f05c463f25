//! Tasks that wait for commits.
//!
//! A waiting future has one slot here, however often it is polled, and leaves the slot when it is
//! dropped; so there are at most as many wakers as futures. The background thread flushes for them,
//! since no thread of theirs waits. It wakes them afterwards, when it holds no lock.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};

use crate::error::{Error, Result};
use crate::sync::Mutex;

/// The key of a waiting task: the stamp that it waits for, and a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaiterKey {
    stamp: u64,
    number: u64,
}

/// The tasks that wait.
#[derive(Default)]
pub struct Wakers(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    tasks: BTreeMap<WaiterKey, Waker>,
    next: u64,
    /// The reason why all waiting tasks were woken although their commits are not on the disk.
    failure: Option<Error>,
}

impl Wakers {
    /// Whether a task may continue. If not, the task is registered, and the result tells whether it
    /// was not registered before.
    pub fn poll(
        &self,
        stamp: u64,
        waiter: &mut Option<WaiterKey>,
        waker: &Waker,
        is_durable: impl Fn() -> bool,
    ) -> (Poll<Result<()>>, bool) {
        let mut waiting = self.0.lock();
        // With the lock held: later durable commits wake the task after it is registered.
        if is_durable() {
            waiter.take().map(|waiter| waiting.tasks.remove(&waiter));
            return (Poll::Ready(Ok(())), false);
        }
        let Some(known) = *waiter else {
            let new = WaiterKey { stamp, number: waiting.next };
            waiting.next += 1;
            waiting.tasks.insert(new, waker.clone());
            *waiter = Some(new);
            return (Poll::Pending, true);
        };
        match waiting.tasks.get_mut(&known) {
            Some(before) => {
                before.clone_from(waker);
                (Poll::Pending, false)
            }
            None => {
                *waiter = None;
                let failure = waiting.failure.as_ref().expect("a task that was woken early");
                (Poll::Ready(Err(failure.again())), false)
            }
        }
    }

    /// The future is gone.
    pub fn leave(&self, waiter: WaiterKey) {
        drop(self.0.lock().tasks.remove(&waiter));
    }

    /// Wakes the tasks whose commits have stamps up to this one; after a failure, all tasks.
    pub fn wake(&self, durable: u64, failure: Option<Error>) {
        let woken = {
            let mut waiting = self.0.lock();
            let later = match failure {
                None => waiting.tasks.split_off(&WaiterKey { stamp: durable + 1, number: 0 }),
                Some(_) => BTreeMap::new(),
            };
            waiting.failure = failure.or(waiting.failure.take());
            std::mem::replace(&mut waiting.tasks, later)
        };
        for waker in woken.into_values() {
            // A waker that panics must not end the thread that writes the journal.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_one_place_and_leaves_it() {
        let (wakers, waker, mut places) = (Wakers::default(), Waker::noop(), [None; 3]);
        for _ in 0..3 {
            for (waiter, stamp) in places.iter_mut().zip([5, 6, 7]) {
                assert!(wakers.poll(stamp, waiter, waker, || false).0.is_pending());
            }
        }
        assert_eq!(wakers.0.lock().tasks.len(), 3);
        wakers.leave(places[0].take().unwrap());
        wakers.wake(6, None);
        assert_eq!(wakers.0.lock().tasks.len(), 1);
        assert!(matches!(wakers.poll(6, &mut places[1], waker, || true).0, Poll::Ready(Ok(()))));
        wakers.wake(6, Some(Error::Full("disk".into())));
        let failed = wakers.poll(7, &mut places[2], waker, || false);
        assert!(matches!(failed, (Poll::Ready(Err(Error::Full(_))), false)));
        assert_eq!(wakers.0.lock().tasks.len(), 0);
    }
}

//! A condition variable for the guards of `lock_api`.

use lock_api::{MutexGuard, RawMutex};

use super::{WaitQueue, Waiter};
use crate::sync::Deadline;

/// Waiting until another thread announces a change, with the guard of any mutex: the standard
/// library's or parking_lot's `Condvar` over a [`WaitQueue`].
///
/// ```
/// use std::thread;
/// use manycore::{Condvar, Mutex};
///
/// static JOBS: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// static CHANGED: Condvar = Condvar::new();
///
/// let worker = thread::spawn(|| {
///     let mut jobs = JOBS.lock();
///     CHANGED.wait_while(&mut jobs, |jobs| jobs.is_empty());
///     jobs.pop()
/// });
/// JOBS.lock().push(7);
/// CHANGED.notify_one();
/// assert_eq!(worker.join().unwrap(), Some(7));
/// ```
///
/// A wait may end although there was no notification. So the caller checks its condition again, or
/// calls [`wait_while`](Self::wait_while), which does so. Unlike in parking_lot, waits with several
/// mutexes at the same time are no error.
#[derive(Debug, Default)]
pub struct Condvar(WaitQueue);

impl Condvar {
    /// Makes a condition variable on which no thread waits.
    #[must_use]
    pub const fn new() -> Self {
        Self(WaitQueue::new())
    }

    /// Releases the mutex, waits until it is notified, and acquires the mutex.
    pub fn wait<R: RawMutex, T: ?Sized>(&self, guard: &mut MutexGuard<'_, R, T>) {
        self.wait_at_most(guard, None);
    }

    /// Waits as long as the condition is true; the condition is evaluated with the mutex held.
    pub fn wait_while<R: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, R, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(&mut **guard) {
            self.wait(guard);
        }
    }

    /// Does the same as [`wait`](Self::wait), until the deadline at most, such as a
    /// `std::time::Instant`; returns whether it was notified.
    pub fn wait_until<R: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, R, T>,
        deadline: impl Into<Deadline>,
    ) -> bool {
        self.wait_at_most(guard, Some(deadline.into()))
    }

    /// Does the same as [`wait`](Self::wait), for this time at most; returns whether it was
    /// notified.
    #[cfg(any(feature = "sim", all(target_os = "linux", not(manycore_bare))))]
    pub fn wait_for<R: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, R, T>,
        timeout: core::time::Duration,
    ) -> bool {
        self.wait_until(guard, Deadline::after(timeout))
    }

    fn wait_at_most<R: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, R, T>,
        deadline: Option<Deadline>,
    ) -> bool {
        let waiter = Waiter::new();
        // SAFETY: the waiter is new, and stays on this thread's stack until `park` has returned
        // true or `withdraw` has returned, below; the queue is borrowed as long.
        unsafe { self.0.enqueue(&waiter) };
        MutexGuard::unlocked(guard, || {
            // SAFETY: put on this queue above; its first `withdraw`.
            let was_notified = waiter.park(deadline) || !unsafe { self.0.withdraw(&waiter) };
            // SAFETY: this thread's waiter, which was signalled or withdrawn.
            unsafe { waiter.wake_next() };
            was_notified
        })
    }

    /// Wakes a thread that waits; returns whether there was one.
    pub fn notify_one(&self) -> bool {
        self.0.signal()
    }

    /// Wakes all threads that wait; returns whether there were any.
    pub fn notify_all(&self) -> bool {
        self.0.broadcast()
    }
}

//! A lock whose waiters sleep.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

use manycore::lock::{Futex, PlainLock};

use super::order::Rank;
use super::pin::might_sleep;
use crate::task::thread;
use crate::watch::counters::{Event, count};

/// A value with a lock whose waiters sleep, and whose owner may sleep.
pub struct Sleep<T> {
    lock: Futex,
    rank: Rank,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached with the lock held only.
unsafe impl<T: Send> Sync for Sleep<T> {}
// SAFETY: the value goes along.
unsafe impl<T: Send> Send for Sleep<T> {}

impl<T> Sleep<T> {
    /// An unlocked one.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self { lock: Futex::new(), rank, value: UnsafeCell::new(value) }
    }

    /// Takes the lock.
    #[track_caller]
    pub fn lock(&self) -> Guard<'_, T> {
        might_sleep();
        thread::current().held.take(self.rank, self.address());
        if !self.lock.try_acquire() {
            count(Event::SleepWaits);
            self.lock.acquire();
        }
        Guard { lock: self }
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(&self.lock).addr()
    }
}

/// The lock is held.
pub struct Guard<'a, T> {
    lock: &'a Sleep<T>,
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        thread::current().held.release(self.lock.address());
        // SAFETY: held since `lock`.
        unsafe { self.lock.lock.release() };
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, and the guard is borrowed for writing.
        unsafe { &mut *self.lock.value.get() }
    }
}

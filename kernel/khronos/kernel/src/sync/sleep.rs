//! A lock whose waiters sleep.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
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

// SAFETY: `lock` gives out one `Guard` at a time, by which alone the value is reached; it may be
// another thread's each time (`T: Send`).
unsafe impl<T: Send> Sync for Sleep<T> {}
// SAFETY: a lock that moves is not borrowed, so there is no `Guard`; the value goes to the other
// thread (`T: Send`).
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
        Guard { lock: self, _not_send: PhantomData }
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(&self.lock).addr()
    }
}

/// The lock is held.
pub struct Guard<'a, T> {
    lock: &'a Sleep<T>,
    /// Nor `Sync`: threads that share a guard would share the value, which need not be `Sync`.
    _not_send: PhantomData<*mut ()>,
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        thread::current().held.release(self.lock.address());
        // SAFETY: `lock` has acquired it for this `Guard`, which releases it here only.
        unsafe { self.lock.lock.release() };
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `lock` has acquired the lock, and the `Guard` keeps it until it is dropped.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: `lock` has acquired the lock, the `Guard` keeps it until it is dropped, and it is
        // borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

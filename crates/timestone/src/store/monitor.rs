//! A lock whose end others wait for, without a queue for the lock itself.

use std::ops::{Deref, DerefMut};

use crate::sync::{Condvar, Mutex, MutexGuard};

/// Data behind a lock. A thread that does not get the lock can wait until its owner releases it,
/// and then checks again whether it still needs the lock.
///
/// Every release wakes all waiting threads, for whatever reason the owner had the lock. If one
/// release did not, a thread that had found the lock held would sleep until the next one.
pub struct Monitor<T> {
    data: Mutex<T>,
    sleepers: Sleepers,
}

#[derive(Default)]
struct Sleepers {
    /// Held briefly by a thread that starts to wait, and by one that wakes the others.
    waiting: Mutex<()>,
    released: Condvar,
}

/// The lock, which the thread holds. Dropping this releases it.
pub struct Held<'m, T> {
    // Fields are dropped in their order: first the lock is released, then the sleepers wake.
    guard: MutexGuard<'m, T>,
    _wake: Wake<'m>,
}

struct Wake<'m>(&'m Sleepers);

impl<T> Monitor<T> {
    pub fn new(data: T) -> Self {
        Self { data: Mutex::new(data), sleepers: Sleepers::default() }
    }

    pub fn lock(&self) -> Held<'_, T> {
        self.held(self.data.lock())
    }

    /// The lock, if no other thread holds it.
    pub fn try_lock(&self) -> Option<Held<'_, T>> {
        self.data.try_lock().map(|guard| self.held(guard))
    }

    fn held<'m>(&'m self, guard: MutexGuard<'m, T>) -> Held<'m, T> {
        Held { guard, _wake: Wake(&self.sleepers) }
    }

    /// Waits until the present owner has released the lock. Returns immediately if there is none,
    /// or if the caller does not need the lock any more. May return early.
    pub fn wait(&self, is_needed: impl FnOnce() -> bool) {
        let mut waiting = self.sleepers.waiting.lock();
        // The holder takes `waiting` after it has released the lock. So a thread that finds the
        // lock held here sleeps before the holder wakes the sleepers.
        if is_needed() && self.data.is_locked() {
            self.sleepers.released.wait(&mut waiting);
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl Drop for Wake<'_> {
    fn drop(&mut self) {
        let _waiting = self.0.waiting.lock();
        self.0.released.notify_all();
    }
}

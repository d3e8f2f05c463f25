//! Data under a lock, for structures that decide themselves when the data may be accessed.

use super::Held;
use crate::RawLock;
use crate::sync::cell::UnsafeCell;

/// A value under a lock.
pub(crate) struct Guarded<T, L> {
    lock: L,
    value: UnsafeCell<T>,
}

// SAFETY: `value` is accessed through `with` and `try_with`, which hold the lock, or through
// `alone`, whose caller excludes others: one thread at a time has it, and it may be a different one
// each time, since `T: Send`.
unsafe impl<T: Send, L: RawLock> Sync for Guarded<T, L> {}
// SAFETY: `&mut self` or a moved value means that no thread holds the lock, and `T: Send` may go to
// another thread.
unsafe impl<T: Send, L: RawLock> Send for Guarded<T, L> {}

impl<T, L: RawLock> Guarded<T, L> {
    pub fn new(value: T) -> Self {
        Self { lock: L::new(), value: UnsafeCell::new(value) }
    }

    /// Does something with the lock held.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let mut node = L::Node::default();
        let _held = Held::new(&self.lock, &mut node);
        // SAFETY: `_held` has acquired the lock and releases it after this statement; `RawLock`
        // excludes all others that go through `with` or `try_with`.
        self.value.with_mut(|value| f(unsafe { &mut *value }))
    }

    /// The same, unless another thread has it.
    pub fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut node = L::Node::default();
        let _held = Held::try_new(&self.lock, &mut node)?;
        // SAFETY: `_held` has acquired the lock and releases it after this statement; `RawLock`
        // excludes all others that go through `with` or `try_with`.
        Some(self.value.with_mut(|value| f(unsafe { &mut *value })))
    }
}

impl<T, L> Guarded<T, L> {
    /// Does something without the lock.
    ///
    /// # Safety
    ///
    /// No other thread has the value meanwhile.
    pub unsafe fn alone<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: no other thread has the value meanwhile (contract of this function).
        self.value.with_mut(|value| f(unsafe { &mut *value }))
    }
}

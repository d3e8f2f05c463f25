//! What is under a lock, for structures that say themselves when it is to be had.

use super::Held;
use crate::RawLock;
use crate::sync::cell::UnsafeCell;

/// A value under a lock.
pub(crate) struct Guarded<T, L> {
    lock: L,
    value: UnsafeCell<T>,
}

// SAFETY: the value goes from thread to thread with the lock.
unsafe impl<T: Send, L: RawLock> Sync for Guarded<T, L> {}
// SAFETY: a lock that nobody holds may be moved; the value is.
unsafe impl<T: Send, L: RawLock> Send for Guarded<T, L> {}

impl<T, L: RawLock> Guarded<T, L> {
    pub fn new(value: T) -> Self {
        Self { lock: L::new(), value: UnsafeCell::new(value) }
    }

    /// Does something with the lock held.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let mut node = L::Node::default();
        let _held = Held::new(&self.lock, &mut node);
        // SAFETY: the lock is held.
        self.value.with_mut(|value| f(unsafe { &mut *value }))
    }

    /// The same, unless somebody else has it.
    pub fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut node = L::Node::default();
        let _held = Held::try_new(&self.lock, &mut node)?;
        // SAFETY: the lock is held.
        Some(self.value.with_mut(|value| f(unsafe { &mut *value })))
    }
}

impl<T, L> Guarded<T, L> {
    /// Does something without the lock.
    ///
    /// # Safety
    ///
    /// Nobody else has the value meanwhile.
    pub unsafe fn alone<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: by the caller's word.
        self.value.with_mut(|value| f(unsafe { &mut *value }))
    }
}

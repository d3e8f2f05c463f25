//! Plain data that threads share.

use core::ops::Deref;

use manycore::sync::cell::UnsafeCell;

/// A value that never changes after its creation. A simulation charges reads of it.
pub(crate) struct Shared<T>(UnsafeCell<T>);

// SAFETY: only shared references are given out, and the value may be dropped by any thread.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    #[inline]
    pub fn get(&self) -> &T {
        // SAFETY: nothing but `new` writes the value.
        self.0.with(|value| unsafe { &*value })
    }
}

/// A value on cache lines of its own.
#[repr(align(64))]
pub(crate) struct Line<T>(pub T);

impl<T> Deref for Line<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

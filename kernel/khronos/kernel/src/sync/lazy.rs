//! A value that is made when somebody first wants it.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Empty at first.
pub struct Lazy<T> {
    /// Null, or from `Box::into_raw`; set once.
    value: AtomicPtr<T>,
    _owns: PhantomData<T>,
}

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Lazy<T> {
    /// Empty.
    pub const fn new() -> Self {
        Self { value: AtomicPtr::new(ptr::null_mut()), _owns: PhantomData }
    }

    /// The value, if it was made.
    pub fn find(&self) -> Option<&T> {
        // Acquire: partner of the Release in `get_or_make`. SAFETY: null, or a box's that lives as
        // long as this, and is not changed.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// The value. If two make it at the same time, one is kept.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.find() {
            return value;
        }
        let made = Box::into_raw(Box::new(make()));
        // Release: partner of the Acquire in `find`; Acquire: of another's Release.
        let (release, acquire) = (Ordering::Release, Ordering::Acquire);
        match self.value.compare_exchange(ptr::null_mut(), made, release, acquire) {
            // SAFETY: just made; it lives as long as this.
            Ok(_) => unsafe { &*made },
            Err(other) => {
                // SAFETY: nobody else has seen what was made here.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: another's box, which lives as long as this, and is not changed.
                unsafe { &*other }
            }
        }
    }
}

impl<T> Drop for Lazy<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: from `Box::into_raw`, and nobody borrows from this any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

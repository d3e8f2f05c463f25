//! A value that is set once, at boot.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

/// Empty at first.
pub struct Once<T> {
    /// 0 empty, 1 being set, 2 set.
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the thread that changes the state from 0 to 1 writes the value, which is then only read.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Once<T> {
    /// Empty.
    pub const fn new() -> Self {
        Self { state: AtomicU8::new(0), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Sets the value.
    ///
    /// # Panics
    ///
    /// If it is set already.
    pub fn set(&self, value: T) {
        let is_first = self.state.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
        assert!(is_first.is_ok(), "what is set once is set twice");
        // SAFETY: this thread has changed the state from 0 to 1, which happens once.
        unsafe { (*self.value.get()).write(value) };
        self.state.store(2, Ordering::Release); // Release: partner of the Acquire in `find`
    }

    /// The value, if it is set.
    pub fn find(&self) -> Option<&T> {
        let is_set = self.state.load(Ordering::Acquire) == 2; // Acquire: partner of `set`'s Release
        // SAFETY: state 2 is set after the value was written (Acquire, above), and no thread writes
        // it again.
        is_set.then(|| unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// The value.
    ///
    /// # Panics
    ///
    /// If it is not set.
    #[track_caller]
    pub fn get(&self) -> &T {
        self.find().expect("what is used is set before")
    }
}

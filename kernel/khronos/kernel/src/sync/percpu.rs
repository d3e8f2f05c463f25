//! A value for each CPU, for threads that are pinned.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use super::pin::pin;
use crate::arch::cpu::MOST;

#[repr(align(128))]
struct Slot<T> {
    is_used: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

/// A value for each CPU, created at the CPU's first use.
pub struct PerCpu<T>([Slot<T>; MOST]);

// SAFETY: a slot is used by threads that are pinned to its CPU only, one at a time; the values are
// made there.
unsafe impl<T> Sync for PerCpu<T> {}

impl<T> Default for PerCpu<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PerCpu<T> {
    /// None yet.
    pub const fn new() -> Self {
        Self(
            [const { Slot { is_used: AtomicBool::new(false), value: UnsafeCell::new(None) } };
                MOST],
        )
    }

    /// Calls `f` with the CPU's value. It must not sleep, and is called pinned.
    ///
    /// # Panics
    ///
    /// If `f` or an interrupt handler asks for the same.
    pub fn with<R>(&self, make: impl FnOnce() -> T, f: impl FnOnce(&mut T) -> R) -> R {
        let pin = pin();
        let slot = &self.0[pin.cpu().number()];
        // Relaxed, both: the CPU's own.
        assert!(!slot.is_used.swap(true, Ordering::Relaxed), "a CPU's own value is used twice");
        // SAFETY: this thread is pinned to the CPU, and the flag says that no other thread on it
        // has the value.
        let value = unsafe { &mut *slot.value.get() };
        let result = f(value.get_or_insert_with(make));
        slot.is_used.store(false, Ordering::Relaxed);
        result
    }
}

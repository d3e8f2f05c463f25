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

/// What threads may use one after the other, and not only the thread that has made it.
///
/// # Safety
///
/// Nothing in it belongs to a thread.
pub unsafe trait PassedOn {}

// SAFETY: a context's handles of domains have records of their own, and belong to no thread; no
// section or session is open between calls, since each call ends what it has begun.
unsafe impl PassedOn for khronos_fs::Cx<'_> {}

// SAFETY: only threads that are pinned to a slot's CPU use the slot, one at a time, as `is_used`
// shows. They may be several threads, one after the other (`PassedOn`).
unsafe impl<T: PassedOn> Sync for PerCpu<T> {}

impl<T: PassedOn> PerCpu<T> {
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

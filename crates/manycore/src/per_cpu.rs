//! A value for each CPU, which one thread at a time uses.

use alloc::boxed::Box;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{CachePadded, cpu, order};

/// Values that are made when they are first used.
pub(crate) struct PerCpu<T>(Box<[CachePadded<CpuSlot<T>>]>);

struct CpuSlot<T> {
    taken: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the values go to another thread, which may use and drop them after the thread that has
// made them (contract of `new`).
unsafe impl<T> Send for PerCpu<T> {}
// SAFETY: a value is accessed only through `Taken`, and `CpuSlot::taken` admits one at a time; its
// Acquire and Release order one thread's accesses to the value before the next one's.
unsafe impl<T> Sync for PerCpu<T> {}

impl<T> PerCpu<T> {
    /// Creates one without values.
    ///
    /// # Safety
    ///
    /// Another thread than the one that has made the values may use and drop them, if that happens
    /// one after the other.
    pub unsafe fn new() -> Self {
        let place = |_| {
            CachePadded(CpuSlot { taken: AtomicBool::new(false), value: UnsafeCell::new(None) })
        };
        Self((0..cpu::count().max(1)).map(place).collect())
    }

    /// Drops the values.
    pub fn clear(&mut self) {
        self.0 = Box::default();
    }

    /// Runs `f` with a value: the CPU's, as a rule. If there is none to be had, one is made, and if
    /// all are in use it is dropped afterwards.
    pub fn with<R>(&self, make: impl FnOnce() -> T, f: impl FnOnce(&mut T) -> R) -> R {
        let own = cpu::current() as usize;
        let at = |number| &self.0[(own + number) % self.0.len()];
        match (0..self.0.len()).find_map(|number| at(number).take()) {
            Some(taken) => taken.0.value.with_mut(|value| {
                // SAFETY: `taken` is the one `Taken` of this place until it is dropped, and the
                // value is reached through it only.
                let value = unsafe { &mut *value };
                f(value.get_or_insert_with(make))
            }),
            // Reached if more threads than CPUs are inside, or if this thread is inside already.
            None => f(&mut make()),
        }
    }
}

impl<T> CpuSlot<T> {
    /// The place, unless another thread uses it.
    fn take(&self) -> Option<Taken<'_, T>> {
        // Relaxed: a hint, which does not move the line of a place that is taken.
        let free = !self.taken.load(Ordering::Relaxed);
        // Acquire: partner of the Release below, for the accesses to the value.
        let taken = free && !self.taken.swap(true, order!(Acquire, "per-cpu-take"));
        taken.then(|| Taken(self))
    }
}

/// A place that the caller uses. Dropped, it is free for another.
struct Taken<'a, T>(&'a CpuSlot<T>);

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        // Release: partner of the Acquire in `take`.
        self.0.taken.store(false, order!(Release, "per-cpu-leave"));
    }
}

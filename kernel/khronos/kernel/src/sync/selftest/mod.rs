//! A number that only a lock protects: tests of locks increment it.

use core::cell::UnsafeCell;

use manycore::RawRwLock;
use manycore::lock::PlainLock;

use super::{sleep, spin};

/// The number and its lock.
#[derive(Default)]
pub struct Counter<L> {
    lock: L,
    value: UnsafeCell<u32>,
}

/// Does not compile if a guard is `Send` or `Sync`: then more than one of the traits applies.
const _: fn() = || {
    trait Stays<Why> {
        fn here() {}
    }
    impl<T> Stays<()> for T {}
    impl<T: Send> Stays<u8> for T {}
    impl<T: Sync> Stays<u16> for T {}
    let _ = <sleep::Guard<'_, ()> as Stays<_>>::here;
    let _ = <spin::Guard<'_, (), spin::Threads> as Stays<_>>::here;
};

// SAFETY: the value is accessed only with the lock held; the test checks that the lock excludes.
unsafe impl<L: Sync> Sync for Counter<L> {}

impl<L> Counter<L> {
    /// The number, when no other thread has the counter.
    pub fn into_value(self) -> u32 {
        self.value.into_inner()
    }

    /// 0.
    pub fn new(lock: L) -> Self {
        Self { lock, value: UnsafeCell::new(0) }
    }
}

impl<L: PlainLock> Counter<L> {
    /// One more, under the lock.
    pub fn increment(&self) {
        self.lock.acquire();
        // SAFETY: the lock is held while the value is touched, and was acquired above.
        unsafe {
            *self.value.get() += 1;
            self.lock.release();
        }
    }
}

impl<L: RawRwLock> Counter<L> {
    /// One more, under the lock for writers.
    pub fn write(&self) {
        self.lock.acquire_write();
        // SAFETY: the lock is held for writing while the value is touched, and was acquired above.
        unsafe {
            *self.value.get() += 1;
            self.lock.release_write();
        }
    }

    /// Whether the number stays while the lock is held for reading.
    pub fn is_stable(&self) -> bool {
        self.lock.acquire_read();
        // SAFETY: the lock is held for reading, and no thread writes; it is released as acquired.
        unsafe {
            let before = self.value.get().read_volatile();
            core::hint::spin_loop();
            let is_stable = before == self.value.get().read_volatile();
            self.lock.release_read();
            is_stable
        }
    }
}

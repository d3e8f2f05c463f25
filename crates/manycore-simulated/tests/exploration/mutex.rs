//! Mutual exclusion, for every lock of the registry.

use std::cell::Cell;

use manycore_sim::thread;
use manycore_simulated::lock::{self, PlainLock};
use manycore_simulated::sync::Deadline;
use manycore_simulated::sync::cell::UnsafeCell;

use crate::explore;

/// A number that only a lock protects, and whether a thread is changing it.
struct Counter<L> {
    lock: L,
    value: UnsafeCell<u32>,
    inside: Cell<bool>,
}

impl<L: PlainLock> Counter<L> {
    fn new() -> Self {
        Self { lock: L::new(), value: UnsafeCell::new(0), inside: Cell::new(false) }
    }

    /// Adds one and releases the lock.
    ///
    /// # Safety
    ///
    /// This thread has acquired the lock.
    unsafe fn increment_and_release(&self) {
        assert!(!self.inside.replace(true), "two threads hold the lock");
        // SAFETY: no other thread accesses it, as the line above has found.
        let before = self.value.with(|value| unsafe { *value });
        // SAFETY: no other thread is in it, as the assertion has found.
        self.value.with_mut(|value| unsafe { *value = before + 1 });
        self.inside.set(false);
        // SAFETY: this thread has acquired the lock (contract of this function).
        unsafe { self.lock.release() };
    }
}

/// A deadline some time from now.
fn soon(nanoseconds: u64) -> Deadline {
    let now = manycore_sim::backend::nanoseconds() + nanoseconds;
    Deadline {
        wall: false,
        seconds: (now / 1_000_000_000) as i64,
        nanoseconds: (now % 1_000_000_000) as u32,
    }
}

/// Threads acquire the lock, in any way, and no acquisition is lost or double.
fn program<L: PlainLock + 'static>(threads: u32, rounds: u32) -> impl Fn() {
    move || {
        let counter = Counter::<L>::new();
        let counts = thread::parallel(threads, |me| {
            let acquired = (0..rounds).filter(|round| {
                let held = match (me + round) % 4 {
                    3 => counter.lock.acquire_until(soon(5_000)),
                    2 => counter.lock.try_acquire(),
                    _ => {
                        counter.lock.acquire();
                        true
                    }
                };
                if held {
                    // SAFETY: one of the ways above has acquired the lock.
                    unsafe { counter.increment_and_release() };
                }
                held
            });
            acquired.count() as u32
        });
        counter.lock.acquire();
        // SAFETY: the lock is held, and keeps other threads away.
        assert_eq!(counter.value.with(|value| unsafe { *value }), counts.iter().sum::<u32>());
        // SAFETY: this thread has acquired it above, and not released it since.
        unsafe { counter.lock.release() };
    }
}

macro_rules! tests {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case)]
            fn $lock() {
                explore().check(program::<lock::$lock>(3, 2));
                explore().check(program::<lock::$lock>(4, 2));
                explore().check(program::<lock::$lock>(2, 3));
            }
        )*
    };
}
manycore_simulated::for_each_lock!(tests);

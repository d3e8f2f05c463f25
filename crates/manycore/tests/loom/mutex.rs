//! Mutual exclusion, for every lock of the registry.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use manycore::lock::{self, InlineLock};

use crate::check;

/// A number that only a lock protects.
struct Counter<L> {
    lock: L,
    value: UnsafeCell<u32>,
}

// SAFETY: the value is only touched with the lock held.
unsafe impl<L: Sync> Sync for Counter<L> {}

impl<L: InlineLock> Counter<L> {
    fn increment(&self) {
        self.lock.acquire();
        // SAFETY: the lock is held, so that this is the only access; loom fails the test if it is not.
        self.value.with_mut(|v| unsafe { *v += 1 });
        // SAFETY: acquired above.
        unsafe { self.lock.release() };
    }
}

/// Some threads increment under the lock: exclusion, visibility, and no lost wake-up (a deadlock fails the model).
fn excludes<L: InlineLock + 'static>(threads: usize, rounds: usize) {
    check(3, move || {
        let counter = Arc::new(Counter { lock: L::new(), value: UnsafeCell::new(0) });
        let workers: Vec<_> = (1..threads)
            .map(|_| {
                let counter = counter.clone();
                loom::thread::spawn(move || (0..rounds).for_each(|_| counter.increment()))
            })
            .collect();
        (0..rounds).for_each(|_| counter.increment());
        workers.into_iter().for_each(|w| w.join().unwrap());
        counter.lock.acquire();
        // SAFETY: the lock is held.
        assert_eq!(counter.value.with(|v| unsafe { *v }), (threads * rounds) as u32);
    });
}

macro_rules! models {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case)]
            fn $lock() {
                excludes::<lock::$lock>(2, 2);
                // Two threads that only spin can yield to each other for ever, and loom tries that.
                if <lock::$lock as InlineLock>::INFO.blocks {
                    excludes::<lock::$lock>(3, 1);
                }
            }
        )*
    };
}
manycore::for_each_lock!(models);

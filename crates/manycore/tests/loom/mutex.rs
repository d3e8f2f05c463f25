//! Mutual exclusion, for every lock of the registry.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use manycore::lock::{self, PlainLock};
use manycore::sync::cpu;

use crate::{SOON, check};

/// A number that only a lock protects.
struct Counter<L> {
    lock: L,
    value: UnsafeCell<u32>,
}

// SAFETY: the value is only touched with the lock held.
unsafe impl<L: Sync> Sync for Counter<L> {}

impl<L: PlainLock> Counter<L> {
    fn increment(&self) {
        self.lock.acquire();
        self.increment_and_release();
    }

    fn increment_soon(&self) -> bool {
        let acquired = self.lock.acquire_until(SOON.unwrap());
        if acquired {
            self.increment_and_release();
        }
        acquired
    }

    fn increment_and_release(&self) {
        // SAFETY: the lock is held, so that this is the only access; loom fails the test if it is
        // not.
        self.value.with_mut(|v| unsafe { *v += 1 });
        // SAFETY: callers have acquired the lock before this.
        unsafe { self.lock.release() };
    }
}

/// Some threads increment under the lock: exclusion, visibility, and no lost wake-up (a deadlock
/// fails the model).
fn excludes<L: PlainLock + 'static>(threads: usize, rounds: usize) {
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
        // SAFETY: the lock is held, and keeps other threads away.
        assert_eq!(counter.value.with(|v| unsafe { *v }), (threads * rounds) as u32);
        // SAFETY: acquired above by this thread, and released once.
        unsafe { counter.lock.release() };
    });
}

/// One of three threads may give up. No other thread loses a wake-up by that, nor the lock.
fn gives_up<L: PlainLock + 'static>() {
    check(2, move || {
        let counter = Arc::new(Counter { lock: L::new(), value: UnsafeCell::new(0) });
        let spawn = |f: fn(&Counter<L>) -> bool| {
            let counter = counter.clone();
            loom::thread::spawn(move || f(&counter))
        };
        let hasty = spawn(Counter::increment_soon);
        let patient = spawn(|counter| {
            counter.increment();
            true
        });
        counter.increment();
        patient.join().unwrap();
        let done = 2 + u32::from(hasty.join().unwrap());
        assert!(counter.lock.try_acquire());
        // SAFETY: the lock is held, and keeps other threads away.
        assert_eq!(counter.value.with(|v| unsafe { *v }), done);
        // SAFETY: acquired above by this thread, and released once.
        unsafe { counter.lock.release() };
    });
}

/// A thread that may have waited lets another one release the lock, and then acquires it again.
#[test]
fn another_thread_releases() {
    const HELD: u32 = 1;
    const RELEASED: u32 = 2;
    check(2, || {
        let counter = Arc::new(Counter { lock: lock::Adaptive::new(), value: UnsafeCell::new(0) });
        let turn = Arc::new(AtomicU32::new(0));
        counter.lock.acquire();
        let holder = {
            let (counter, turn) = (counter.clone(), turn.clone());
            loom::thread::spawn(move || {
                counter.lock.acquire();
                turn.store(HELD, Ordering::Release);
                // Relaxed: a thread that releases for another need not synchronise with it.
                while turn.load(Ordering::Relaxed) != RELEASED {
                    loom::thread::yield_now();
                }
                counter.increment();
            })
        };
        let waiter = {
            let counter = counter.clone();
            loom::thread::spawn(move || counter.increment())
        };
        counter.increment_and_release();
        while turn.load(Ordering::Acquire) != HELD {
            loom::thread::yield_now();
        }
        counter.increment_and_release();
        turn.store(RELEASED, Ordering::Relaxed);
        [holder, waiter].into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Two wait on one node of memory, so that the first of them sorts the queue, and passes that role
/// on to the other.
#[test]
fn neighbours_sort_their_queue() {
    check(2, || {
        let counter = Arc::new(Counter { lock: lock::Shfl::new(), value: UnsafeCell::new(0) });
        counter.lock.acquire();
        let spawn = || {
            let counter = counter.clone();
            loom::thread::spawn(move || {
                cpu::run_on(0);
                counter.increment();
            })
        };
        let workers = [spawn(), spawn()];
        counter.increment_and_release();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
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
                if <lock::$lock as PlainLock>::INFO.blocks {
                    excludes::<lock::$lock>(3, 1);
                    gives_up::<lock::$lock>();
                }
            }
        )*
    };
}
manycore::for_each_lock!(models);

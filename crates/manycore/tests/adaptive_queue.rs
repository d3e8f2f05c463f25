//! `adaptive` as on machines with many CPUs, where its waiters queue. In a process of its own: how
//! many are many is one thing for all.
#![cfg(all(target_os = "linux", not(any(loom, manycore_bare))))]
#![allow(clippy::disallowed_types, reason = "a test is no algorithm, and looks at the time")]

use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use manycore::lock::{Adaptive, PlainLock};
use manycore::sync::{Deadline, tuning};
use manycore_history::run::unless_interpreted;

/// A number that only the lock protects.
struct Counter {
    lock: Adaptive,
    value: UnsafeCell<u64>,
}

// SAFETY: the value is only touched with the lock held.
unsafe impl Sync for Counter {}

impl Counter {
    fn new() -> Self {
        tuning::set_few_cpus(0);
        Self { lock: Adaptive::new(), value: UnsafeCell::new(0) }
    }

    fn add(&self) {
        // SAFETY: the lock is held by this thread, which callers have acquired it for.
        unsafe { *self.value.get() += 1 };
    }

    fn add_and_release(&self) {
        self.add();
        // SAFETY: this thread has acquired the lock, as callers do before this.
        unsafe { self.lock.release() };
    }
}

/// Threads acquire for a while, some of them with a deadline that may pass; nothing is lost and no
/// thread hangs.
fn counts(threads: u64, rounds: u64) {
    let counter = Counter::new();
    let done = AtomicU64::new(0);
    thread::scope(|s| {
        for thread in 0..threads {
            let (counter, done) = (&counter, &done);
            s.spawn(move || {
                for round in 0..rounds {
                    let acquired = if (thread + round) % 5 == 0 {
                        counter.lock.acquire_until(Deadline::after(Duration::from_micros(200)))
                    } else {
                        counter.lock.acquire();
                        true
                    };
                    if acquired {
                        counter.add_and_release();
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!(counter.lock.try_acquire(), "the lock is left free");
    // SAFETY: the lock is held, and keeps other threads away.
    assert_eq!(unsafe { *counter.value.get() }, done.into_inner());
}

#[test]
fn few_threads_queue() {
    counts(3, unless_interpreted(20_000, 20));
}

#[test]
fn more_threads_than_cpus_queue() {
    counts(32, unless_interpreted(2_000, 3));
}

/// One thread acquires the lock and another one releases it, whether or not the first has a node in
/// the queue.
#[test]
fn another_thread_releases() {
    let counter = Counter::new();
    let (handed, over) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    counter.lock.acquire();
                    counter.add_and_release();
                }
            });
        }
        s.spawn(|| {
            loop {
                handed.wait();
                let is_last = over.load(Ordering::Relaxed); // not set again before the next wait
                counter.add_and_release();
                handed.wait();
                if is_last {
                    break;
                }
            }
        });
        let start = Instant::now();
        for round in 0..unless_interpreted(2_000, 5) {
            counter.lock.acquire();
            counter.add();
            let last = round + 1 == unless_interpreted(2_000, 5);
            over.store(last || start.elapsed() > Duration::from_secs(5), Ordering::Relaxed);
            handed.wait();
            handed.wait();
            if over.load(Ordering::Relaxed) {
                break;
            }
        }
    });
    assert!(counter.lock.try_acquire(), "the lock is left free");
}

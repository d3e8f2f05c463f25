//! Every reader-writer lock of the registry: a writer is alone, and every thread acquires the lock
//! in the end.

use std::cell::Cell;

use manycore_sim::thread;
use manycore_simulated::lock::{self, PhaseRw, Preference};
use manycore_simulated::sync::atomic::{AtomicU32, Ordering};
use manycore_simulated::{LockInfo, RawRwLock};

use crate::explore;

/// Threads acquire the lock in all ways. A thread that only tries, and fails, goes on without the
/// lock.
fn program<L: RawRwLock>(readers: u32, writers: u32) -> impl Fn() {
    move || {
        let (lock, reading, writing) = (L::new(), Cell::new(0), Cell::new(false));
        // An access, at which another thread may come in.
        let elsewhere = AtomicU32::new(0);
        // Relaxed, both: what they do is take a step.
        let step = || _ = elsewhere.fetch_add(1, Ordering::Relaxed);
        let read = |tries: bool| {
            if tries && !lock.try_acquire_read() {
                return;
            }
            if !tries {
                lock.acquire_read();
            }
            assert!(!writing.get(), "a reader is admitted with a writer inside");
            reading.set(reading.get() + 1);
            step();
            assert!(!writing.get(), "a writer is admitted with a reader inside");
            reading.set(reading.get() - 1);
            // SAFETY: this thread has acquired it above, and not released it since.
            unsafe { lock.release_read() };
        };
        let write = |tries: bool| {
            if tries && !lock.try_acquire_write() {
                return;
            }
            if !tries {
                lock.acquire_write();
            }
            assert!(!writing.replace(true), "two writers");
            assert_eq!(reading.get(), 0, "a writer is admitted with a reader inside");
            step();
            writing.set(false);
            // SAFETY: this thread has acquired it above, and not released it since.
            unsafe { lock.release_write() };
        };
        thread::parallel(readers + writers, |me| {
            for round in 0..2 {
                let tries = (me + round) % 4 == 3;
                if me < readers { read(tries) } else { write(tries) }
            }
        });
        assert!(lock.try_acquire_write(), "somebody has not released it");
    }
}

macro_rules! tests {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case)]
            fn $lock() {
                explore().check(program::<lock::$lock>(2, 1));
                explore().check(program::<lock::$lock>(1, 2));
                explore().check(program::<lock::$lock>(2, 2));
            }
        )*
    };
}
manycore_simulated::for_each_rw_lock!(tests);

/// `phase-rw` with readers that pass waiting writers, as a program's own lock may want it.
struct ReadersFirst(PhaseRw);

// SAFETY: the lock inside, a `PhaseRw`, excludes and orders as `RawRwLock` requires.
unsafe impl RawRwLock for ReadersFirst {
    const INFO: LockInfo = <PhaseRw as RawRwLock>::INFO;

    fn new() -> Self {
        Self(PhaseRw::new())
    }

    fn try_acquire_read(&self) -> bool {
        self.0.try_read(Preference::Readers)
    }

    fn acquire_read(&self) {
        self.0.read(Preference::Readers);
    }

    unsafe fn release_read(&self) {
        // SAFETY: this thread has acquired the lock in this way (contract of this function).
        unsafe { self.0.release_read() }
    }

    fn try_acquire_write(&self) -> bool {
        self.0.try_write()
    }

    fn acquire_write(&self) {
        self.0.write();
    }

    unsafe fn release_write(&self) {
        // SAFETY: this thread has acquired the lock in this way (contract of this function).
        unsafe { self.0.release_write() }
    }
}

#[test]
fn readers_that_pass_writers() {
    explore().check(program::<ReadersFirst>(2, 1));
    explore().check(program::<ReadersFirst>(2, 2));
}

//! The reader-writer lock: a writer is alone, and everybody gets in.

use std::cell::Cell;

use manycore_sim::thread;
use manycore_simulated::lock::{PhaseRw, Preference};
use manycore_simulated::sync::atomic::{AtomicU32, Ordering};

use crate::explore;

fn program(readers: u32, writers: u32, preference: Preference) -> impl Fn() {
    move || {
        let (lock, reading, writing) = (PhaseRw::new(), Cell::new(0), Cell::new(false));
        // An access, at which another thread may come in.
        let elsewhere = AtomicU32::new(0);
        // Relaxed, both: what they do is take a step.
        let step = || _ = elsewhere.fetch_add(1, Ordering::Relaxed);
        thread::parallel(readers + writers, |me| {
            for _ in 0..2 {
                if me < readers {
                    lock.read(preference);
                    assert!(!writing.get(), "a reader is admitted with a writer inside");
                    reading.set(reading.get() + 1);
                    step();
                    assert!(!writing.get(), "a writer is admitted with a reader inside");
                    reading.set(reading.get() - 1);
                    // SAFETY: acquired above.
                    unsafe { lock.release_read() };
                } else {
                    lock.write();
                    assert!(!writing.replace(true), "two writers");
                    assert_eq!(reading.get(), 0, "a writer is admitted with a reader inside");
                    step();
                    writing.set(false);
                    // SAFETY: acquired above.
                    unsafe { lock.release_write() };
                }
            }
        });
        assert!(lock.try_write(), "somebody has not released it");
    }
}

#[test]
fn readers_and_writers() {
    for preference in [Preference::Readers, Preference::Phases] {
        explore().check(program(2, 1, preference));
        explore().check(program(1, 2, preference));
        explore().check(program(2, 2, preference));
    }
}

//! The features of `adaptive-rw` beyond those of every reader-writer lock: marks that outlive their
//! threads and their locks, and that other threads release; preferences; deadlines.

use std::mem::MaybeUninit;
use std::thread;
use std::time::Duration;

use manycore::lock::{AdaptiveRw, Bravo, Preference};
use manycore::sync::Deadline;
use manycore::{RawRwLock, sync};

/// Readers contend so often that a lock becomes biased. No reader leaves a mark behind.
fn bias(lock: &AdaptiveRw) {
    lock.read(Preference::Phases);
    for _ in 0..100 {
        lock.read(Preference::Phases);
        // SAFETY: this thread has acquired it above, and not released it since.
        unsafe { lock.release_read() };
    }
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { lock.release_read() };
}

fn biased() -> AdaptiveRw {
    let lock = AdaptiveRw::new();
    bias(&lock);
    lock
}

fn soon() -> Option<Deadline> {
    Some(Deadline::after(Duration::from_millis(20)))
}

/// A reader never releases, the lock is destroyed, and another one is created at its address.
fn begins_anew<L: RawRwLock>(meet: impl Fn(&L)) {
    let mut place = MaybeUninit::<L>::uninit();
    for _ in 0..3 {
        let lock = place.write(L::new());
        meet(lock);
        assert!(lock.try_acquire_write(), "a mark of the lock that was here before");
        // SAFETY: this thread has acquired it above, and not released it since.
        unsafe { lock.release_write() };
        meet(lock);
        lock.acquire_read();
        assert!(!lock.try_acquire_write());
        // SAFETY: written above, and no code uses it any more.
        unsafe { place.assume_init_drop() };
    }
}

#[test]
fn a_forgotten_reader_does_not_hold_the_next_lock_at_its_address() {
    begins_anew::<AdaptiveRw>(bias);
    begins_anew::<Bravo>(|lock| {
        for _ in 0..2 {
            lock.acquire_read();
            // SAFETY: this thread has acquired it above, and not released it since.
            unsafe { lock.release_read() };
        }
    });
}

#[test]
fn another_thread_may_release_for_reading() {
    let lock = biased();
    // More than there is room for on one thread's line.
    (0..8).for_each(|_| lock.read(Preference::Phases));
    assert!(!lock.try_write() && !lock.write_until(soon()));
    thread::scope(|scope| {
        for _ in 0..8 {
            // SAFETY: the main thread has acquired it once for each of these threads, and any
            // thread may release it.
            scope.spawn(|| unsafe { lock.release_read() });
        }
        lock.write();
    });
    assert!(!lock.try_read(Preference::Readers));
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { lock.release_write() };
    assert!(lock.try_write());
}

#[test]
fn deadlines_pass_and_leave_nothing_behind() {
    let lock = biased();
    lock.read(Preference::Phases);
    assert!(!lock.write_until(soon()));
    assert!(lock.read_until(Preference::Phases, soon()), "the writer has gone");
    // SAFETY: this thread has acquired both above, and not released them since.
    unsafe {
        lock.release_read();
        lock.release_read();
    }
    assert!(lock.write_until(soon()));
    thread::scope(|scope| {
        let lock = &lock;
        let elsewhere = |f: fn(&AdaptiveRw) -> bool| scope.spawn(move || f(lock)).join().unwrap();
        assert!(!elsewhere(|lock| lock.read_until(Preference::Phases, soon())));
        assert!(!elsewhere(|lock| lock.read_until(Preference::Readers, soon())));
        assert!(!elsewhere(|lock| lock.write_until(soon())));
    });
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { lock.release_write() };
    assert!(lock.try_write());
}

/// With that preference, a reader may acquire the lock again while a writer waits; the writer
/// follows after both releases.
#[test]
fn readers_may_read_again_while_a_writer_waits() {
    for lock in [AdaptiveRw::new(), biased()] {
        lock.read(Preference::Readers);
        thread::scope(|scope| {
            let writing = scope.spawn(|| lock.write());
            while lock.try_read(Preference::Phases) {
                // SAFETY: this thread has acquired it above, and not released it since.
                unsafe { lock.release_read() };
                sync::hint::yield_now(); // until the writer waits
            }
            lock.read(Preference::Readers);
            assert!(!writing.is_finished());
            // SAFETY: this thread has acquired both above, and not released them since.
            unsafe {
                lock.release_read();
                lock.release_read();
            }
        });
    }
}

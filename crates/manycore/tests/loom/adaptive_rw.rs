//! What `adaptive-rw` can beside what every reader-writer lock can: a bias, several writers in a row, preferences,
//! deadlines, releases by other threads, and an end right after a release.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread::{self, JoinHandle};
use manycore::lock::{AdaptiveRw, Preference};
use manycore::sync::{Deadline, tuning};

use crate::{Mortal, SOON, check, check_first};

/// A number that is written with the lock held for writing, and read with it held in any way.
struct Shared {
    lock: AdaptiveRw,
    value: UnsafeCell<u32>,
}

// SAFETY: the value is accessed under the lock only; loom fails the test if that does not order the accesses.
unsafe impl Sync for Shared {}

/// Two readers meet, so that those that come leave marks.
fn bias(lock: &AdaptiveRw) {
    assert!(lock.try_read(Preference::Phases) && lock.try_read(Preference::Phases));
    // SAFETY: acquired above.
    unsafe {
        lock.release_read();
        lock.release_read();
    }
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self { lock: AdaptiveRw::new(), value: UnsafeCell::new(0) })
    }

    fn biased() -> Arc<Self> {
        let shared = Self::new();
        bias(&shared.lock);
        shared
    }

    fn look(&self) -> u32 {
        // SAFETY: the lock is held.
        self.value.with(|v| unsafe { *v })
    }

    fn read(&self, preference: Preference, deadline: Option<Deadline>) -> bool {
        let acquired = self.lock.read_until(preference, deadline);
        if acquired {
            self.look();
            // SAFETY: acquired above.
            unsafe { self.lock.release_read() };
        }
        acquired
    }

    fn write(&self, deadline: Option<Deadline>) -> bool {
        let acquired = self.lock.write_until(deadline);
        if acquired {
            self.change();
        }
        acquired
    }

    /// With the lock held for writing.
    fn change(&self) {
        // SAFETY: the caller holds it.
        self.value.with_mut(|v| unsafe { *v += 1 });
        // SAFETY: as above.
        unsafe { self.lock.release_write() };
    }
}

fn spawn<R: 'static>(
    shared: &Arc<Shared>,
    f: impl FnOnce(&Shared) -> R + 'static,
) -> JoinHandle<R> {
    let shared = shared.clone();
    thread::spawn(move || f(&shared))
}

/// With a bias and without one.
fn each(preemptions: usize, model: impl Fn(Arc<Shared>) + Copy + Send + Sync + 'static) {
    check(preemptions, move || model(Shared::new()));
    check(preemptions, move || model(Shared::biased()));
}

/// Readers that may pass a waiting writer; [`crate::rw`] has those that may not.
#[test]
fn a_writer_beside_a_reader() {
    each(3, |shared| {
        let reading = spawn(&shared, |s| (0..2).all(|_| s.read(Preference::Readers, None)));
        assert!(shared.write(None));
        reading.join().unwrap();
        assert!(shared.lock.try_write());
    });
}

/// Marks, and no preference.
#[test]
fn a_writer_beside_a_reader_that_marks() {
    check(3, || {
        let shared = Shared::biased();
        let reading = spawn(&shared, |s| (0..2).all(|_| s.read(Preference::Phases, None)));
        assert!(shared.write(None));
        reading.join().unwrap();
        assert!(shared.lock.try_write());
    });
}

/// [`crate::rw`] has them without a bias.
#[test]
fn two_writers_and_a_reader_that_marks() {
    check_first(20_000, 1, || {
        let shared = Shared::biased();
        let writing = spawn(&shared, |s| s.write(None));
        let reading = spawn(&shared, |s| s.read(Preference::Phases, None));
        assert!(shared.write(None));
        assert!(writing.join().unwrap() && reading.join().unwrap());
        assert!(shared.lock.try_write());
        assert_eq!(shared.look(), 2);
    });
}

/// They have their marks in one cell, and take each other's.
#[test]
fn two_readers_that_mark_and_a_writer() {
    check_first(20_000, 2, || {
        let shared = Shared::biased();
        let reading = [(); 2].map(|()| spawn(&shared, |s| s.read(Preference::Phases, None)));
        assert!(shared.write(None));
        reading.into_iter().for_each(|thread| assert!(thread.join().unwrap()));
        assert!(shared.lock.try_write());
    });
}

/// One hands the lock to the next in the queue.
#[test]
fn writers_in_a_row() {
    check(2, || {
        let shared = Shared::new();
        assert!(shared.lock.write_until(None));
        let writing = [(); 2].map(|()| spawn(&shared, |s| s.write(None)));
        shared.change();
        writing.into_iter().for_each(|thread| assert!(thread.join().unwrap()));
        assert!(shared.lock.try_read(Preference::Phases));
        assert_eq!(shared.look(), 3);
    });
}

/// Who tries to write finds the readers' marks, or takes the lock.
#[test]
fn a_writer_that_tries() {
    each(3, |shared| {
        let reading = spawn(&shared, |s| s.read(Preference::Phases, None));
        if shared.lock.try_write() {
            shared.change();
        }
        assert!(reading.join().unwrap());
        assert!(shared.lock.try_write());
    });
}

/// The reader may count before there is a bias, and leave when there is one.
#[test]
fn a_writer_that_tries_beside_a_reader_that_counts() {
    check(2, || {
        let shared = Shared::new();
        let reading = spawn(&shared, |s| s.read(Preference::Phases, None));
        bias(&shared.lock);
        if shared.lock.try_write() {
            shared.change();
        }
        assert!(reading.join().unwrap());
        assert!(shared.lock.try_write());
    });
}

/// One that has slept in vain counts itself, and waits on.
#[test]
fn a_reader_that_insists() {
    check(3, || {
        tuning::set_lenience(0);
        let shared = Shared::new();
        assert!(shared.lock.try_write());
        let reading = spawn(&shared, |s| s.read(Preference::Phases, None));
        shared.change();
        assert!(shared.write(None));
        assert!(reading.join().unwrap());
        assert!(shared.lock.try_write());
    });
}

#[test]
fn readers_may_read_again_while_a_writer_waits() {
    each(3, |shared| {
        assert!(shared.lock.try_read(Preference::Readers));
        let writing = spawn(&shared, |s| s.write(None));
        assert!(shared.read(Preference::Readers, None));
        // SAFETY: acquired at the start.
        unsafe { shared.lock.release_read() };
        assert!(writing.join().unwrap());
    });
}

#[test]
fn a_writer_that_gives_up_lets_readers_go_on() {
    each(2, |shared| {
        assert!(shared.lock.try_read(Preference::Phases));
        let writing = spawn(&shared, |s| s.write(SOON));
        let reading = spawn(&shared, |s| s.read(Preference::Phases, None));
        // The reader has to come through although this section does not end before.
        assert!(reading.join().unwrap());
        assert!(!writing.join().unwrap());
        // SAFETY: acquired at the start.
        unsafe { shared.lock.release_read() };
    });
}

/// A writer gives up while the last reader leaves, and another writer comes by.
#[test]
fn a_writer_that_gives_up_at_the_last_moment() {
    check_first(20_000, 1, || {
        let shared = Shared::biased();
        assert!(shared.lock.try_read(Preference::Phases));
        let hasty = spawn(&shared, |s| s.write(SOON));
        let reading = spawn(&shared, |s| s.read(Preference::Phases, None));
        // SAFETY: acquired at the start.
        unsafe { shared.lock.release_read() };
        shared.write(None);
        hasty.join().unwrap();
        assert!(reading.join().unwrap());
    });
}

#[test]
fn a_reader_that_gives_up_does_not_hold_the_lock() {
    check(3, || {
        tuning::set_lenience(0);
        let shared = Shared::new();
        assert!(shared.lock.try_write());
        let reading = spawn(&shared, |s| s.read(Preference::Phases, SOON));
        // SAFETY: acquired above.
        unsafe { shared.lock.release_write() };
        shared.write(None);
        reading.join().unwrap();
        assert!(shared.lock.try_write());
    });
}

/// The mark is another thread's, and a writer waits for it.
#[test]
fn another_thread_releases() {
    each(3, |shared| {
        assert!(shared.lock.try_read(Preference::Phases));
        let releasing = spawn(&shared, |s| {
            s.look();
            // SAFETY: acquired for this thread.
            unsafe { s.lock.release_read() };
        });
        assert!(shared.write(None));
        releasing.join().unwrap();
    });
}

/// The writer comes after the reader, and destroys the lock, although the reader may be on its way out of its release.
#[test]
fn a_writer_may_destroy_the_lock_after_a_reader() {
    for biased in [false, true] {
        check(3, move || {
            let lock = Mortal::new(AdaptiveRw::new());
            if biased {
                bias(&lock);
            }
            assert!(lock.try_read(Preference::Phases));
            let writing = thread::spawn({
                let lock = lock.clone();
                move || {
                    lock.write();
                    // SAFETY: acquired above.
                    unsafe { lock.release_write() };
                    lock.end();
                }
            });
            // SAFETY: acquired above.
            unsafe { lock.release_read() };
            writing.join().unwrap();
        });
    }
}

#[test]
fn a_reader_may_destroy_the_lock_after_a_writer() {
    for biased in [false, true] {
        check(3, move || {
            let lock = Mortal::new(AdaptiveRw::new());
            if biased {
                bias(&lock);
            }
            lock.write();
            let reading = thread::spawn({
                let lock = lock.clone();
                move || {
                    lock.read(Preference::Phases);
                    // SAFETY: acquired above.
                    unsafe { lock.release_read() };
                    lock.end();
                }
            });
            // SAFETY: acquired above.
            unsafe { lock.release_write() };
            reading.join().unwrap();
        });
    }
}

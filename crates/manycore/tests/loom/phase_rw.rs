//! What `phase-rw` can beside what every reader-writer lock can: preferences, deadlines, and an end right after a release.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread::{self, JoinHandle};
use manycore::lock::{PhaseRw, Preference};
use manycore::sync::{Deadline, tuning};

use crate::{Mortal, SOON, check, rw};

/// A number that is written with the lock held for writing, and read with it held in any way.
struct Shared {
    lock: PhaseRw,
    value: UnsafeCell<u32>,
}

// SAFETY: the value is accessed under the lock only; loom fails the test if that does not order the accesses.
unsafe impl Sync for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self { lock: PhaseRw::new(), value: UnsafeCell::new(0) })
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
            // SAFETY: the lock is held for writing.
            self.value.with_mut(|v| unsafe { *v += 1 });
            // SAFETY: acquired above.
            unsafe { self.lock.release_write() };
        }
        acquired
    }
}

fn spawn<R: 'static>(
    shared: &Arc<Shared>,
    f: impl FnOnce(&Shared) -> R + 'static,
) -> JoinHandle<R> {
    let shared = shared.clone();
    thread::spawn(move || f(&shared))
}

/// Readers that may pass a waiting writer; [`crate::rw`] has those that may not.
#[test]
fn a_writer_beside_a_reader() {
    check(3, || {
        let shared = Shared::new();
        let reading = spawn(&shared, |s| (0..2).all(|_| s.read(Preference::Readers, None)));
        assert!(shared.write(None) && shared.write(None));
        reading.join().unwrap();
        assert!(shared.lock.try_write());
    });
}

/// Deeper than for every lock: others are made of this one.
#[test]
fn three_threads() {
    rw::two_writers_and_a_reader::<PhaseRw>(2);
    rw::two_readers_and_a_writer::<PhaseRw>(2);
}

/// One is overtaken by another and insists: the lock is handed to it.
#[test]
fn writers_that_overtake() {
    check(2, || {
        let shared = Shared::new();
        let writing = spawn(&shared, |s| s.write(None));
        (0..3).for_each(|_| assert!(shared.write(None)));
        assert!(writing.join().unwrap());
        assert!(shared.lock.try_read(Preference::Readers));
        assert_eq!(shared.look(), 4);
    });
}

/// The lock is handed to a writer that insists, unless a reader has come meanwhile.
#[test]
fn a_writer_that_insists_beside_a_reader() {
    check(3, || {
        tuning::set_lenience(0);
        let shared = Shared::new();
        assert!(shared.lock.try_read(Preference::Readers));
        let writing = spawn(&shared, |s| s.write(None));
        let reading = spawn(&shared, |s| s.read(Preference::Readers, None));
        // SAFETY: acquired above.
        unsafe { shared.lock.release_read() };
        assert!(writing.join().unwrap() && reading.join().unwrap());
        assert!(shared.lock.try_write());
    });
}

#[test]
fn readers_may_read_again_while_a_writer_waits() {
    check(3, || {
        let shared = Shared::new();
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
    check(2, || {
        let shared = Shared::new();
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

#[test]
fn a_writer_that_gives_up_does_not_take_a_turn_with_it() {
    check(2, || {
        let shared = Shared::new();
        assert!(shared.lock.try_write());
        let hasty = spawn(&shared, |s| s.write(SOON));
        let writing = spawn(&shared, |s| s.write(None));
        // SAFETY: acquired above.
        unsafe { shared.lock.release_write() };
        hasty.join().unwrap();
        assert!(writing.join().unwrap());
        assert!(shared.lock.try_write());
    });
}

/// A writer gives up while the last reader looks for a successor, and another writer comes by.
#[test]
fn a_writer_that_gives_up_at_the_last_moment() {
    check(2, || {
        let shared = Shared::new();
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

/// The writer comes after the reader, and destroys the lock, although the reader may be on its way out of its release.
#[test]
fn a_writer_may_destroy_the_lock_after_a_reader() {
    check(3, || {
        let lock = Mortal::new(PhaseRw::new());
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

#[test]
fn a_reader_may_destroy_the_lock_after_a_writer() {
    check(3, || {
        let lock = Mortal::new(PhaseRw::new());
        assert!(lock.try_write());
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

//! The features of `adaptive-rw` beyond those of every reader-writer lock: a bias, several writers
//! in a row, preferences, deadlines, releases by other threads, and an end right after a release.

use std::sync::Arc;

use manycore::lock::{AdaptiveRw, Preference};
use manycore::sync::tuning;

use crate::rw::Shared;
use crate::{Mortal, by_preference, check, check_first};

/// Two readers meet, so that those that come leave marks.
fn bias(lock: &AdaptiveRw) {
    assert!(lock.try_read(Preference::Phases) && lock.try_read(Preference::Phases));
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe {
        lock.release_read();
        lock.release_read();
    }
}

fn new() -> Arc<Shared<AdaptiveRw>> {
    Shared::new()
}

fn biased() -> Arc<Shared<AdaptiveRw>> {
    let shared = new();
    bias(&shared.lock);
    shared
}

/// With a bias and without one.
fn each(
    preemptions: usize,
    model: impl Fn(Arc<Shared<AdaptiveRw>>) + Copy + Send + Sync + 'static,
) {
    check(preemptions, move || model(new()));
    check(preemptions, move || model(biased()));
}

/// The same for a lock that ends.
fn each_mortal(model: fn(Arc<Mortal<AdaptiveRw>>)) {
    check(3, move || model(Mortal::new(AdaptiveRw::new())));
    check(3, move || {
        let lock = Mortal::new(AdaptiveRw::new());
        bias(&lock);
        model(lock);
    });
}

#[test]
fn a_writer_beside_a_reader() {
    each(3, |shared| by_preference::a_writer_beside_a_reader(shared, 1));
}

/// Marks, and no preference.
#[test]
fn a_writer_beside_a_reader_that_marks() {
    check(3, || {
        let shared = biased();
        let reading = shared.spawn(|s| (0..2).all(|_| s.read_by(Preference::Phases, None)));
        assert!(shared.write_by(None));
        reading.join().unwrap();
        assert!(shared.lock.try_write());
    });
}

/// [`crate::rw`] has them without a bias.
#[test]
fn two_writers_and_a_reader_that_marks() {
    check_first(20_000, 1, || {
        let shared = biased();
        let writing = shared.spawn(|s| s.write_by(None));
        let reading = shared.spawn(|s| s.read_by(Preference::Phases, None));
        assert!(shared.write_by(None));
        assert!(writing.join().unwrap() && reading.join().unwrap());
        assert!(shared.lock.try_write());
        assert_eq!(shared.look(), 2);
    });
}

/// Two readers have their marks in one cell, and take each other's.
#[test]
fn two_readers_that_mark_and_a_writer() {
    check_first(20_000, 2, || {
        let shared = biased();
        let reading = [(); 2].map(|()| shared.spawn(|s| s.read_by(Preference::Phases, None)));
        assert!(shared.write_by(None));
        reading.into_iter().for_each(|thread| assert!(thread.join().unwrap()));
        assert!(shared.lock.try_write());
    });
}

/// One hands the lock to the next in the queue.
#[test]
fn writers_in_a_row() {
    check(2, || {
        let shared = new();
        assert!(shared.lock.write_until(None));
        let writing = [(); 2].map(|()| shared.spawn(|s| s.write_by(None)));
        shared.change();
        writing.into_iter().for_each(|thread| assert!(thread.join().unwrap()));
        assert!(shared.lock.try_read(Preference::Phases));
        assert_eq!(shared.look(), 3);
    });
}

/// A thread that tries to write finds the readers' marks, or takes the lock.
#[test]
fn a_writer_that_tries() {
    each(3, |shared| {
        let reading = shared.spawn(|s| s.read_by(Preference::Phases, None));
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
        let shared = new();
        let reading = shared.spawn(|s| s.read_by(Preference::Phases, None));
        bias(&shared.lock);
        if shared.lock.try_write() {
            shared.change();
        }
        assert!(reading.join().unwrap());
        assert!(shared.lock.try_write());
    });
}

/// A reader that slept in vain counts itself, and continues to wait.
#[test]
fn a_reader_that_insists() {
    check(3, || {
        tuning::set_lenience(0);
        let shared = new();
        assert!(shared.lock.try_write());
        let reading = shared.spawn(|s| s.read_by(Preference::Phases, None));
        shared.change();
        assert!(shared.write_by(None));
        assert!(reading.join().unwrap());
        assert!(shared.lock.try_write());
    });
}

#[test]
fn readers_may_read_again_while_a_writer_waits() {
    each(3, by_preference::readers_may_read_again_while_a_writer_waits);
}

#[test]
fn a_writer_that_gives_up_lets_readers_go_on() {
    each(2, by_preference::a_writer_that_gives_up_lets_readers_go_on);
}

#[test]
fn a_writer_that_gives_up_at_the_last_moment() {
    check_first(20_000, 1, || {
        by_preference::a_writer_that_gives_up_at_the_last_moment(biased());
    });
}

#[test]
fn a_reader_that_gives_up_does_not_hold_the_lock() {
    check(3, || {
        tuning::set_lenience(0);
        by_preference::a_reader_that_gives_up_does_not_hold_the_lock(new());
    });
}

/// The mark belongs to another thread, and a writer waits for it.
#[test]
fn another_thread_releases() {
    each(3, |shared| {
        assert!(shared.lock.try_read(Preference::Phases));
        let releasing = shared.spawn(|s| {
            s.look();
            // SAFETY: the other thread has acquired it for this one, and any thread may release it.
            unsafe { s.lock.release_read() };
        });
        assert!(shared.write_by(None));
        releasing.join().unwrap();
    });
}

#[test]
fn a_writer_may_destroy_the_lock_after_a_reader() {
    each_mortal(by_preference::a_writer_may_destroy_the_lock_after_a_reader);
}

#[test]
fn a_reader_may_destroy_the_lock_after_a_writer() {
    each_mortal(by_preference::a_reader_may_destroy_the_lock_after_a_writer);
}

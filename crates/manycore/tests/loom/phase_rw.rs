//! The features of `phase-rw` beyond those of every reader-writer lock: preferences, deadlines, and
//! an end right after a release.

use manycore::lock::{PhaseRw, Preference};
use manycore::sync::tuning;

use crate::rw::{self, Shared};
use crate::{Mortal, SOON, by_preference, check};

fn new() -> std::sync::Arc<Shared<PhaseRw>> {
    Shared::new()
}

#[test]
fn a_writer_beside_a_reader() {
    check(3, || by_preference::a_writer_beside_a_reader(new(), 2));
}

/// Explored deeper than other locks, because others consist of this one.
#[test]
fn three_threads() {
    rw::two_writers_and_a_reader::<PhaseRw>(2);
    rw::two_readers_and_a_writer::<PhaseRw>(2);
}

/// One waiter is overtaken by another and then insists: the lock is handed to it.
#[test]
fn writers_that_overtake() {
    check(2, || {
        let shared = new();
        let writing = shared.spawn(|s| s.write_by(None));
        (0..3).for_each(|_| assert!(shared.write_by(None)));
        assert!(writing.join().unwrap());
        assert!(shared.lock.try_read(Preference::Readers));
        assert_eq!(shared.look(), 4);
    });
}

/// The lock is handed to a writer that insists, unless a reader has arrived meanwhile.
#[test]
fn a_writer_that_insists_beside_a_reader() {
    check(3, || {
        tuning::set_lenience(0);
        let shared = new();
        assert!(shared.lock.try_read(Preference::Readers));
        let writing = shared.spawn(|s| s.write_by(None));
        let reading = shared.spawn(|s| s.read_by(Preference::Readers, None));
        // SAFETY: this thread has acquired it above, and not released it since.
        unsafe { shared.lock.release_read() };
        assert!(writing.join().unwrap() && reading.join().unwrap());
        assert!(shared.lock.try_write());
    });
}

#[test]
fn readers_may_read_again_while_a_writer_waits() {
    check(3, || by_preference::readers_may_read_again_while_a_writer_waits(new()));
}

#[test]
fn a_writer_that_gives_up_lets_readers_go_on() {
    check(2, || by_preference::a_writer_that_gives_up_lets_readers_go_on(new()));
}

#[test]
fn a_writer_that_gives_up_does_not_take_a_turn_with_it() {
    check(2, || {
        let shared = new();
        assert!(shared.lock.try_write());
        let hasty = shared.spawn(|s| s.write_by(SOON));
        let writing = shared.spawn(|s| s.write_by(None));
        // SAFETY: this thread has acquired it above, and not released it since.
        unsafe { shared.lock.release_write() };
        hasty.join().unwrap();
        assert!(writing.join().unwrap());
        assert!(shared.lock.try_write());
    });
}

#[test]
fn a_writer_that_gives_up_at_the_last_moment() {
    check(2, || by_preference::a_writer_that_gives_up_at_the_last_moment(new()));
}

#[test]
fn a_reader_that_gives_up_does_not_hold_the_lock() {
    check(3, || by_preference::a_reader_that_gives_up_does_not_hold_the_lock(new()));
}

#[test]
fn a_writer_may_destroy_the_lock_after_a_reader() {
    check(3, || {
        by_preference::a_writer_may_destroy_the_lock_after_a_reader(Mortal::new(PhaseRw::new()))
    });
}

#[test]
fn a_reader_may_destroy_the_lock_after_a_writer() {
    check(3, || {
        by_preference::a_reader_may_destroy_the_lock_after_a_writer(Mortal::new(PhaseRw::new()))
    });
}

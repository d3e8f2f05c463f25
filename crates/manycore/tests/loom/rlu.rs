//! RLU: two threads, the clock that the checker can follow.

use std::sync::Arc;

use loom::thread;
use manycore::clock::{Counter, RelaxedClock};
use manycore::rlu::{Config, Domain};
use manycore::session::{RawSession, View};

use crate::sessions::{self, add, objects, read};
use crate::{check, check_first};

fn domain(deferred: usize) -> Domain<Counter> {
    Domain::new(Counter::default(), Config { deferred, ..Config::default() })
}

#[test]
fn nothing_is_lost() {
    sessions::nothing_is_lost(|| domain(0), View::Latest);
}

#[test]
fn an_object_is_freed_when_nobody_has_it() {
    sessions::an_object_is_freed_when_nobody_has_it(|| domain(0), |_| ());
}

#[test]
fn write_skew_is_removed_by_locks() {
    sessions::write_skew_is_removed_by_locks(|| domain(0));
}

/// A snapshot beside commits sees all of one or nothing, and what it has seen it sees again.
#[test]
fn snapshots_are_consistent() {
    check_first(8_000, 2, || {
        let domain = Arc::new(domain(0));
        let objects = objects(&*domain);
        let shared = domain.clone();
        let other = thread::spawn(move || {
            let mut handle = shared.register();
            (0..2).for_each(|_| assert!(add(&mut handle, &objects, View::Latest)));
        });
        let mut handle = domain.register();
        let seen = read(&mut handle, &objects, View::Snapshot);
        assert_eq!(seen[0], seen[1], "half of a commit");
        let latest = read(&mut handle, &objects[..1], View::Latest)[0];
        assert!(seen[0] <= latest, "{seen:?} {latest}");
        other.join().unwrap();
        assert_eq!(read(&mut handle, &objects, View::Snapshot), [2; 2]);
    });
}

/// A session that reads a commit need not have asked the clock for it.
#[test]
fn a_commit_is_seen_without_the_clock() {
    check(2, || {
        let clock = RelaxedClock(Counter::default());
        let domain = Arc::new(Domain::new(clock, Config::default()));
        let objects = objects(&*domain);
        let shared = domain.clone();
        let other = thread::spawn(move || {
            assert!(add(&mut shared.register(), &objects[..1], View::Latest));
        });
        let seen = read(&mut domain.register(), &objects[..1], View::Latest)[0];
        let steals = domain.stats().steals;
        assert!(steals <= u64::from(seen) && seen <= 1, "{seen} by {steals} steals");
        other.join().unwrap();
    });
}

/// Objects are written back, and the memory of copies is used again, while another thread reads.
#[test]
fn the_latest_beside_writing_back() {
    check_first(8_000, 2, || writes_back_beside_a_reader(View::Latest));
}

#[test]
fn a_snapshot_beside_writing_back() {
    check_first(8_000, 2, || writes_back_beside_a_reader(View::Snapshot));
}

fn writes_back_beside_a_reader(view: View) {
    let domain = Arc::new(domain(0));
    let objects = objects(&*domain);
    let shared = domain.clone();
    let other = thread::spawn(move || {
        let mut handle = shared.register();
        // Twice in one session: what it has seen stays as it was.
        // SAFETY: a session, from begin to end.
        unsafe {
            handle.begin(view);
            let first = handle.deref(objects[0]);
            let (before, again) = (*first, *handle.deref(objects[0]));
            assert_eq!(*first, before, "what a session reads has changed");
            assert!(again == before || view == View::Latest && again > before);
            handle.commit().unwrap();
        }
    });
    let mut handle = domain.register();
    (0..3).for_each(|_| assert!(add(&mut handle, &objects[..1], View::Latest)));
    other.join().unwrap();
    assert_eq!(read(&mut handle, &objects[..1], view), [3]);
    assert_eq!(domain.stats().written_back, 3);
}

/// What a thread has put off, another writes back that wants to change the same.
#[test]
fn one_writes_back_for_another() {
    check_first(8_000, 2, || {
        let domain = Arc::new(domain(4));
        let objects = objects(&*domain);
        let shared = domain.clone();
        let other = thread::spawn(move || {
            let mut handle = shared.register();
            (0..2).filter(|_| add(&mut handle, &objects[..1], View::Latest)).count() as u32
        });
        let mut handle = domain.register();
        let mine = (0..2).filter(|_| add(&mut handle, &objects[..1], View::Latest)).count() as u32;
        let sum = mine + other.join().unwrap();
        assert_eq!(read(&mut handle, &objects[..1], View::Snapshot), [sum]);
        assert!(sum > 0, "nothing was committed");
    });
}

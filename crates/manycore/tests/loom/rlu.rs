//! RLU: two threads, the clock that the checker can follow.

use std::sync::Arc;

use loom::thread;
use manycore::clock::{Clock, Counter, RelaxedClock};
use manycore::rlu::{Config, Domain, Handle};
use manycore::session::{Link, RawSession, View};

use crate::sessions::{self, add, objects, read};
use crate::{check, check_first};

fn domain(deferred: usize) -> Domain<Counter> {
    Domain::new(Counter::default(), Config::default().with_deferred(deferred))
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

#[test]
fn write_skew_is_removed_by_looks() {
    sessions::write_skew_is_removed_by_looks(|| domain(0));
}

/// A snapshot beside commits sees all of a commit or nothing, and later reads see the same again.
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
        // Twice in one session: its view stays the same. SAFETY: a session, from begin to end.
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

/// One thread's deferred commit is written back by another that wants to change the same object.
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

/// A clock that stands still, and gives readers and commits arbitrary times.
struct Wrong {
    present: u64,
    stamp: u64,
}

// SAFETY: its times are below 2^63, and it is not exact.
unsafe impl Clock for Wrong {
    fn present(&self) -> u64 {
        self.present
    }

    fn stamp(&self) -> u64 {
        self.stamp
    }

    fn fresh(&self) -> u64 {
        self.present
    }

    fn horizon(&self) -> u64 {
        self.present
    }
}

const AHEAD: Wrong = Wrong { present: 1_000, stamp: 1 };
const BEHIND: Wrong = Wrong { present: 1, stamp: 1_000 };

/// A snapshot under a wrong clock: the objects that it has read do not change, and those that it
/// finds are valid.
fn look(handle: &mut Handle<'_, Wrong>, object: Link<u32>) {
    // SAFETY: the session ends in this block, and what it has found stays until then.
    unsafe {
        handle.begin(View::Snapshot);
        let first = handle.deref(object);
        let (before, _) = (*first, *handle.deref(object));
        assert_eq!(*first, before, "what a session reads has changed");
        handle.commit().unwrap();
    }
}

fn stays_under_a_wrong_clock(clock: fn() -> Wrong, is_used: bool, readers: usize, changes: u32) {
    check_first(10_000, 2, move || {
        let domain = Arc::new(Domain::new(clock(), Config::default()));
        let [object, _] = objects(&*domain);
        if is_used {
            look(&mut domain.register(), object);
        }
        let others: Vec<_> = (0..readers)
            .map(|_| domain.clone())
            .map(|domain| thread::spawn(move || look(&mut domain.register(), object)))
            .collect();
        let mut handle = domain.register();
        (0..changes).for_each(|_| assert!(add(&mut handle, &[object], View::Latest)));
        others.into_iter().for_each(|other| other.join().unwrap());
        // A thread that begins after a commit has returned sees it nevertheless.
        assert_eq!(read(&mut handle, &[object], View::Snapshot), [changes]);
    });
}

#[test]
fn a_clock_that_is_behind() {
    stays_under_a_wrong_clock(|| BEHIND, true, 1, 2);
}

#[test]
fn a_clock_that_is_ahead() {
    stays_under_a_wrong_clock(|| AHEAD, true, 1, 2);
}

#[test]
fn the_first_snapshot_by_a_clock_that_is_behind() {
    stays_under_a_wrong_clock(|| BEHIND, false, 1, 2);
}

#[test]
fn two_first_snapshots() {
    stays_under_a_wrong_clock(|| BEHIND, false, 2, 1);
}

/// The clock gives two commits the same stamp. A session that begins after the first one must not
/// be treated as one that began after the second.
#[test]
fn two_commit_by_a_clock_that_stands_still() {
    check_first(10_000, 2, || {
        // Neither commit waits for sessions; the operation after the second one does.
        let domain = Domain::new(AHEAD, Config::default().with_deferred(1));
        let domain = Arc::new(domain);
        let [mine, others] = objects(&*domain);
        look(&mut domain.register(), mine);
        let shared = domain.clone();
        let other = thread::spawn(move || {
            let mut handle = shared.register();
            assert!(add(&mut handle, &[others], View::Latest));
            look(&mut handle, mine);
        });
        let mut handle = domain.register();
        assert!(add(&mut handle, &[mine], View::Latest));
        add(&mut handle, &[mine], View::Latest); // which it is not to lock before it is written back
        other.join().unwrap();
    });
}

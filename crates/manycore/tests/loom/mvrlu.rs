//! MV-RLU: two threads, logs of few versions, the clock that the checker can follow.

use std::sync::Arc;

use loom::thread;
use manycore::clock::Counter;
use manycore::mvrlu::Domain;
use manycore::session::{RawSession, View};

use crate::check;
use crate::sessions::{self, add, few_segments, objects, read};

/// With segments for two versions.
fn domain() -> Domain<Counter> {
    Domain::new(Counter::default(), few_segments(256))
}

#[test]
fn nothing_is_lost() {
    sessions::nothing_is_lost(domain, View::Snapshot);
}

#[test]
fn an_object_is_freed_when_nobody_has_it() {
    sessions::an_object_is_freed_when_nobody_has_it(domain, |handle| handle.flush());
}

#[test]
fn write_skew_is_removed_by_locks() {
    sessions::write_skew_is_removed_by_locks(domain);
}

#[test]
fn write_skew_is_removed_by_looks() {
    sessions::write_skew_is_removed_by_looks(domain);
}

/// A snapshot beside a commit sees all of the commit or nothing, and later reads see the same
/// again.
#[test]
fn snapshots_are_consistent() {
    check(3, || {
        let domain = Arc::new(domain());
        let objects = objects(&*domain);
        let shared = domain.clone();
        let other = thread::spawn(move || {
            let mut handle = shared.register();
            assert!(add(&mut handle, &objects, View::Snapshot));
        });
        let mut handle = domain.register();
        let seen = read(&mut handle, &objects, View::Snapshot);
        assert_eq!(seen[0], seen[1], "half of a commit");
        let latest = read(&mut handle, &objects[..1], View::Latest)[0];
        let after = read(&mut handle, &objects, View::Snapshot);
        assert!(seen[0] <= latest && latest <= after[0], "{seen:?} {latest} {after:?}");
        assert_eq!(after[0], after[1], "half of a commit");
        other.join().unwrap();
        assert_eq!(read(&mut handle, &objects, View::Snapshot), [1; 2]);
    });
}

/// A version is written back and discarded while another thread reads.
fn discards_beside_a_reader(view: View) {
    check(2, move || {
        let domain = Arc::new(domain());
        let objects = objects(&*domain);
        let shared = domain.clone();
        let other = thread::spawn(move || read(&mut shared.register(), &objects[..1], view)[0]);
        let mut handle = domain.register();
        assert!(add(&mut handle, &objects[..1], View::Latest));
        handle.flush();
        assert!(other.join().unwrap() <= 1);
        // In the room of the first, perhaps.
        assert!(add(&mut handle, &objects[..1], View::Latest));
        assert_eq!(read(&mut handle, &objects[..1], view), [2]);
    });
}

#[test]
fn the_latest_beside_reclamation() {
    discards_beside_a_reader(View::Latest);
}

#[test]
fn a_snapshot_beside_reclamation() {
    discards_beside_a_reader(View::Snapshot);
}

/// A thread reclaims the log of another, which goes on.
#[test]
fn one_reclaims_for_another() {
    check(2, || {
        let domain = Arc::new(domain());
        let objects = objects(&*domain);
        let mut handle = domain.register();
        let shared = domain.clone();
        let other = thread::spawn(move || {
            assert!(add(&mut shared.register(), &objects[..1], View::Latest));
        });
        handle.flush();
        other.join().unwrap();
        handle.flush();
        let stats = domain.stats();
        assert!(stats.helps > 0 && stats.written_back > 0, "{stats:?}");
        assert_eq!(read(&mut handle, &objects[..1], View::Latest), [1]);
    });
}

/// A lock that was given up is discarded while another thread reads it.
#[test]
fn an_abort_beside_a_reader() {
    check(2, || {
        let domain = Arc::new(domain());
        let objects = objects(&*domain);
        let shared = domain.clone();
        let other = thread::spawn(move || {
            let mut handle = shared.register();
            let seen = read(&mut handle, &objects[..1], View::Latest);
            (seen, add(&mut handle, &objects[..1], View::Latest))
        });
        let mut handle = domain.register();
        // SAFETY: a session, from begin to end; the objects are not freed.
        unsafe {
            handle.begin(View::Latest);
            if let Ok(data) = handle.try_lock(objects[0]) {
                *data = 7;
            }
            handle.abort();
        }
        handle.flush();
        let (seen, added) = other.join().unwrap();
        assert_eq!(seen, [0], "what was never committed");
        assert_eq!(read(&mut handle, &objects[..1], View::Latest), [u32::from(added)]);
    });
}

/// A snapshot sees the same state again, even if the thread that made it is at its next
/// transaction.
#[test]
fn a_record_is_used_again() {
    check(2, || {
        let domain = Arc::new(domain());
        let objects = objects(&*domain);
        let shared = domain.clone();
        let other = thread::spawn(move || {
            let mut handle = shared.register();
            objects.iter().for_each(|object| assert!(add(&mut handle, &[*object], View::Latest)));
        });
        let seen = read(&mut domain.register(), &[objects[0]; 2], View::Snapshot);
        assert_eq!(seen[0], seen[1], "what a snapshot has seen has changed");
        other.join().unwrap();
    });
}

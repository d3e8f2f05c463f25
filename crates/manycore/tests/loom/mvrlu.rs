//! MV-RLU: two threads, logs of few versions, the clock that the checker can follow.

use std::sync::Arc;

use loom::thread;
use manycore::clock::Counter;
use manycore::mvrlu::{Config, Domain};
use manycore::session::View;

use crate::sessions::{self, add, objects, read};
use crate::{check, check_first};

/// With a segment for two versions, and a look for a grace period after each session, or when a segment is begun.
fn domain(after_each: bool) -> Domain<Counter> {
    let config = Config {
        segment_bytes: 256,
        segments: 2,
        segments_max: 4,
        low_percent: 0,
        hops_max: if after_each { 0 } else { u32::MAX },
        ..Config::default()
    };
    Domain::new(Counter::default(), config)
}

#[test]
fn nothing_is_lost() {
    sessions::nothing_is_lost(|| domain(false), View::Snapshot);
}

#[test]
fn an_object_is_freed_when_nobody_has_it() {
    sessions::an_object_is_freed_when_nobody_has_it(|| domain(true));
}

#[test]
fn write_skew_is_removed_by_locks() {
    sessions::write_skew_is_removed_by_locks(|| domain(false));
}

/// A snapshot beside a commit sees all of it or nothing, and what it has seen it sees again.
#[test]
fn snapshots_are_consistent() {
    check(3, || {
        let domain = Arc::new(domain(false));
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

/// Versions are written back and discarded while another thread reads.
fn discards_beside_a_reader(view: View) -> impl Fn() {
    move || {
        let domain = Arc::new(domain(true));
        let objects = objects(&*domain);
        let shared = domain.clone();
        let other = thread::spawn(move || {
            let mut handle = shared.register();
            read(&mut handle, &objects[..1], view);
        });
        let mut handle = domain.register();
        for _ in 0..2 {
            assert!(add(&mut handle, &objects[..1], View::Latest));
        }
        other.join().unwrap();
        for _ in 0..2 {
            assert!(add(&mut handle, &objects[..1], View::Latest));
        }
        assert_eq!(read(&mut handle, &objects[..1], view), [4]);
        let stats = domain.stats();
        assert!(stats.written_back > 0, "{stats:?}");
    }
}

#[test]
fn the_latest_beside_reclamation() {
    check_first(8_000, 2, discards_beside_a_reader(View::Latest));
}

#[test]
fn a_snapshot_beside_reclamation() {
    check_first(8_000, 2, discards_beside_a_reader(View::Snapshot));
}

//! MV-RLU: two threads, logs of few versions, the clock that the checker can follow.

use std::sync::Arc;

use loom::thread;
use manycore::clock::Counter;
use manycore::mvrlu::{Config, Domain};
use manycore::session::{Conflict, Link, RawSession, View};

use crate::{check, check_first};

type Handle<'a> = manycore::mvrlu::Handle<'a, Counter>;

/// With a segment for two versions, and a look for a grace period after each session, or when a segment is begun.
fn domain(after_each: bool) -> Arc<Domain<Counter>> {
    let config = Config {
        segment_bytes: 256,
        segments: 2,
        segments_max: 4,
        low_percent: 0,
        hops_max: if after_each { 0 } else { u32::MAX },
        ..Config::default()
    };
    Arc::new(Domain::new(Counter::default(), config))
}

/// Two objects, made before the threads are.
fn objects(domain: &Domain<Counter>) -> [Link<u32>; 2] {
    let mut handle = domain.register();
    // SAFETY: a session, from begin to end.
    unsafe {
        handle.begin(View::Latest);
        let objects = [0; 2].map(|data| handle.alloc(data));
        handle.commit();
        objects
    }
}

/// One transaction that adds one to the objects; whether it committed.
fn add(handle: &mut Handle<'_>, objects: &[Link<u32>], view: View) -> bool {
    // SAFETY: a session, from begin to end; the objects are not freed.
    unsafe {
        handle.begin(view);
        for object in objects {
            match handle.try_lock(*object) {
                Ok(data) => *data += 1,
                Err(_) => {
                    handle.abort();
                    return false;
                }
            }
        }
        handle.commit();
    }
    true
}

fn read(handle: &mut Handle<'_>, objects: &[Link<u32>], view: View) -> Vec<u32> {
    // SAFETY: a session, from begin to end; the objects are not freed.
    unsafe {
        handle.begin(view);
        let data = objects.iter().map(|object| *handle.deref(*object)).collect();
        handle.commit();
        data
    }
}

/// Two threads add to both objects; what commits is there, once, and nobody sees one object changed without the other.
#[test]
fn nothing_is_lost() {
    check(2, || {
        let domain = domain(false);
        let objects = objects(&domain);
        let shared = domain.clone();
        let other =
            thread::spawn(move || u32::from(add(&mut shared.register(), &objects, View::Snapshot)));
        let mut handle = domain.register();
        let mine = u32::from(add(&mut handle, &objects, View::Snapshot));
        let sum = mine + other.join().unwrap();
        assert_eq!(read(&mut handle, &objects, View::Snapshot), [sum; 2]);
        assert!(sum > 0, "two conflicts");
    });
}

/// A snapshot beside a commit sees all of it or nothing, and what it has seen it sees again.
#[test]
fn snapshots_are_consistent() {
    check(3, || {
        let domain = domain(false);
        let objects = objects(&domain);
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
        let domain = domain(true);
        let objects = objects(&domain);
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

/// An object that is unlinked and freed stays for as long as somebody may be there, and its memory is used again.
#[test]
fn an_object_is_freed_when_nobody_has_it() {
    check_first(8_000, 2, || {
        let domain = domain(true);
        let mut handle = domain.register();
        // SAFETY: a session, from begin to end.
        let root = unsafe {
            handle.begin(View::Latest);
            let leaf = handle.alloc(1_u32);
            let root = handle.alloc(leaf);
            handle.commit();
            root
        };
        let shared = domain.clone();
        let other = thread::spawn(move || {
            let mut handle = shared.register();
            // SAFETY: a session, from begin to end; the leaf is that of the root.
            unsafe {
                handle.begin(View::Latest);
                let leaf = *handle.deref(root);
                let data = *handle.deref(leaf);
                assert!((1..=3).contains(&data), "{data}");
                handle.commit();
            }
        });
        for data in 2..=3_u32 {
            // SAFETY: a session, from begin to end; the leaf is freed when no object leads to it any more.
            unsafe {
                handle.begin(View::Latest);
                let place = handle.try_lock(root).unwrap();
                let before = *place;
                *place = handle.alloc(data);
                assert_eq!(handle.free(before), Ok(()));
                handle.commit();
            }
        }
        other.join().unwrap();
    });
}

/// Locks for reading only keep others from changing the object, and leave nothing behind.
#[test]
fn write_skew_is_removed_by_locks() {
    /// Changes one object if the other is still 0, which it locks.
    fn claim(handle: &mut Handle<'_>, mine: Link<u32>, other: Link<u32>) -> Result<(), Conflict> {
        // SAFETY: a session, from begin to end; the objects are not freed.
        unsafe {
            handle.begin(View::Snapshot);
            let mut claim = || {
                handle.try_lock_const(other)?;
                if *handle.deref(other) == 0 {
                    *handle.try_lock(mine)? = 1;
                }
                Ok(())
            };
            let result = claim();
            if result.is_ok() {
                handle.commit()
            } else {
                handle.abort()
            }
            result
        }
    }
    check(2, || {
        let domain = domain(false);
        let [one, two] = objects(&domain);
        let shared = domain.clone();
        let other = thread::spawn(move || {
            let _ = claim(&mut shared.register(), one, two);
        });
        let mut handle = domain.register();
        let _ = claim(&mut handle, two, one);
        other.join().unwrap();
        let sum: u32 = read(&mut handle, &[one, two], View::Snapshot).iter().sum();
        assert!(sum <= 1, "both have claimed");
    });
}

//! RLU: two threads, the clock that the checker can follow.

use std::sync::Arc;

use loom::thread;
use manycore::clock::{Clock, Counter, RelaxedClock};
use manycore::rlu::{Config, Domain};
use manycore::session::{Conflict, Link, RawSession, View};

use crate::{check, check_first};

type Handle<'a, C = Counter> = manycore::rlu::Handle<'a, C>;

fn domain(deferred: usize) -> Arc<Domain<Counter>> {
    Arc::new(Domain::new(Counter::default(), Config { deferred, ..Config::default() }))
}

/// Two objects, made before the threads are.
fn objects<C: Clock>(domain: &Domain<C>) -> [Link<u32>; 2] {
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
fn add<C: Clock>(handle: &mut Handle<'_, C>, objects: &[Link<u32>], view: View) -> bool {
    // SAFETY: a session, from begin to end; the objects are not freed.
    unsafe {
        handle.begin(view);
        for object in objects {
            match handle.try_lock(*object) {
                Ok(data) => *data += 1,
                Err(conflict) => {
                    handle.abort();
                    handle.back_off(conflict, 0);
                    return false;
                }
            }
        }
        handle.commit();
    }
    true
}

fn read<C: Clock>(handle: &mut Handle<'_, C>, objects: &[Link<u32>], view: View) -> Vec<u32> {
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
        let domain = domain(0);
        let objects = objects(&domain);
        let shared = domain.clone();
        let other =
            thread::spawn(move || u32::from(add(&mut shared.register(), &objects, View::Latest)));
        let mut handle = domain.register();
        let mine = u32::from(add(&mut handle, &objects, View::Latest));
        let sum = mine + other.join().unwrap();
        assert_eq!(read(&mut handle, &objects, View::Snapshot), [sum; 2]);
        assert!(sum > 0, "two conflicts");
    });
}

/// A snapshot beside commits sees all of one or nothing, and what it has seen it sees again.
#[test]
fn snapshots_are_consistent() {
    check_first(8_000, 2, || {
        let domain = domain(0);
        let objects = objects(&domain);
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
        let objects = objects(&domain);
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
    let domain = domain(0);
    let objects = objects(&domain);
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
            handle.commit();
        }
    });
    let mut handle = domain.register();
    (0..3).for_each(|_| assert!(add(&mut handle, &objects[..1], View::Latest)));
    other.join().unwrap();
    assert_eq!(read(&mut handle, &objects[..1], view), [3]);
    assert_eq!(domain.stats().written_back, 3);
}

/// An object that is unlinked and freed stays for as long as somebody may be there, and its memory is used again.
#[test]
fn an_object_is_freed_when_nobody_has_it() {
    check_first(8_000, 2, || {
        let domain = domain(0);
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
        assert_eq!(domain.stats().freed, 2);
    });
}

/// What a thread has put off, another writes back that wants to change the same.
#[test]
fn one_writes_back_for_another() {
    check_first(8_000, 2, || {
        let domain = domain(4);
        let objects = objects(&domain);
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
        let domain = domain(0);
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

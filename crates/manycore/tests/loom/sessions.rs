//! The common part of MV-RLU and RLU: two threads, two objects, and a clock that the checker can
//! follow.

use std::sync::Arc;

use loom::thread;
use manycore::mvrlu;
use manycore::session::{Conflict, Link, RawSession, Sessions, View};

use crate::check;

/// A configuration with few and small segments. A thread searches for a grace period only when a
/// model flushes, and when it begins a segment.
pub fn few_segments(bytes: usize) -> mvrlu::Config {
    mvrlu::Config::default()
        .with_segment_bytes(bytes)
        .with_segments(2)
        .with_segments_max(4)
        .with_low_percent(0)
        .with_hops_max(u32::MAX)
}

/// Two objects, made before the threads are.
pub fn objects(domain: &impl Sessions) -> [Link<u32>; 2] {
    let mut handle = domain.register();
    // SAFETY: the session ends in this block, and what it has found stays until then.
    unsafe {
        handle.begin(View::Latest);
        let objects = [0; 2].map(|data| handle.alloc(data));
        handle.commit().unwrap();
        objects
    }
}

/// Runs one transaction that adds one to the objects; returns whether it has committed.
pub fn add(handle: &mut impl RawSession, objects: &[Link<u32>], view: View) -> bool {
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
        handle.commit().unwrap();
    }
    true
}

pub fn read(handle: &mut impl RawSession, objects: &[Link<u32>], view: View) -> Vec<u32> {
    // SAFETY: a session, from begin to end; the objects are not freed.
    unsafe {
        handle.begin(view);
        let data = objects.iter().map(|object| *handle.deref(*object)).collect();
        handle.commit().unwrap();
        data
    }
}

/// Two threads add to both objects; each commit is there once, and no thread sees one object
/// changed without the other.
pub fn nothing_is_lost<M: Sessions + 'static>(domain: fn() -> M, view: View) {
    check(2, move || {
        let domain = Arc::new(domain());
        let objects = objects(&*domain);
        let shared = domain.clone();
        let other = thread::spawn(move || u32::from(add(&mut shared.register(), &objects, view)));
        let mut handle = domain.register();
        let mine = u32::from(add(&mut handle, &objects, view));
        let sum = mine + other.join().unwrap();
        assert_eq!(read(&mut handle, &objects, View::Snapshot), [sum; 2]);
        assert!(sum > 0, "two conflicts");
    });
}

/// An object that is unlinked and freed stays as long as a thread may have it. `flush` makes the
/// domain reuse its memory, if that does not happen by itself.
pub fn an_object_is_freed_when_nobody_has_it<M: Sessions + 'static>(
    domain: fn() -> M,
    flush: for<'a, 'h> fn(&'h mut M::Handle<'a>),
) {
    check(2, move || {
        let domain = Arc::new(domain());
        let mut handle = domain.register();
        // SAFETY: the session ends in this block, and what it has found stays until then.
        let root = unsafe {
            handle.begin(View::Latest);
            let leaf = handle.alloc(1_u32);
            let root = handle.alloc(leaf);
            handle.commit().unwrap();
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
                assert!((1..=2).contains(&data), "{data}");
                handle.commit().unwrap();
            }
        });
        // SAFETY: a session, from begin to end; the leaf is freed when no object leads to it any
        // more.
        unsafe {
            handle.begin(View::Latest);
            let place = handle.try_lock(root).unwrap();
            let before = *place;
            *place = handle.alloc(2_u32);
            assert_eq!(handle.free(before), Ok(()));
            handle.commit().unwrap();
        }
        flush(&mut handle);
        other.join().unwrap();
    });
}

/// Locks one object, and changes the other if the locked one is still 0.
fn claim(handle: &mut impl RawSession, mine: Link<u32>, other: Link<u32>) -> Result<(), Conflict> {
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
            handle.commit().unwrap()
        } else {
            handle.abort()
        }
        result
    }
}

/// Locks for reading only prevent changes of the object, and leave nothing behind.
pub fn write_skew_is_removed_by_locks<M: Sessions + 'static>(domain: fn() -> M) {
    check(2, move || {
        let domain = Arc::new(domain());
        let [one, two] = objects(&*domain);
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

/// Changes an object if another one is 0 and not locked by another thread; that one is not locked.
fn claim_by_a_look<S: RawSession>(handle: &mut S, one: Link<u32>, other: Link<u32>) {
    // SAFETY: a session, from begin to end; the objects are not freed.
    unsafe {
        handle.begin(View::Latest);
        let claimed = handle.try_lock(one).and_then(|data| {
            let is_free = *handle.read_unlocked(other)? == 0;
            *data = u32::from(is_free);
            Ok(())
        });
        match claimed {
            Ok(()) => drop(handle.commit()),
            Err(_) => handle.abort(),
        }
    }
}

/// Two transactions each change what the other reads. One finds the other's lock, or the other's
/// commit.
pub fn write_skew_is_removed_by_looks<M: Sessions + 'static>(domain: fn() -> M) {
    check(2, move || {
        let domain = Arc::new(domain());
        let [one, two] = objects(&*domain);
        let shared = domain.clone();
        let other = thread::spawn(move || claim_by_a_look(&mut shared.register(), one, two));
        let mut handle = domain.register();
        claim_by_a_look(&mut handle, two, one);
        other.join().unwrap();
        let sum: u32 = read(&mut handle, &[one, two], View::Snapshot).iter().sum();
        assert!(sum <= 1, "both have claimed");
    });
}

//! Closures of transactions that do not pass a conflict on.

use std::sync::mpsc;
use std::thread;

use manycore::collections::hash::{MvrluGrowingTable, MvrluTable, RluGrowingTable, RluTable};
use manycore::collections::list::{MvrluList, RluList};
use manycore::collections::tree::{MvrluTree, RluTree};
use manycore::collections::versioned::{Placement, Versioned};
use manycore::session::{self, Conflict, Sessions};
use manycore::{ConcurrentMap, MapHandle, mvrlu, rlu};

/// Keys in the order of their insertion into a tree. 40 has two children, and its successor is
/// deep; 90 has one child, 10 none.
const KEYS: [u64; 9] = [40, 20, 80, 10, 30, 60, 90, 50, 95];

/// While another thread holds the lock of `locked`, a transaction meets the conflict in each of its
/// operations, and has no other effect.
fn swallows<M: Sessions, P: Placement<u64>>(map: &Versioned<u64, u64, M, P>, locked: u64, key: u64)
where
    Versioned<u64, u64, M, P>: Sync,
{
    let mut handle = ConcurrentMap::handle(map);
    KEYS.iter().for_each(|&key| _ = MapHandle::insert(&mut handle, key, key));
    let ((locks, is_locked), (releases, is_released)) = (mpsc::channel(), mpsc::channel());
    let mut attempts = 0;
    let mut met = false;
    thread::scope(|s| {
        s.spawn(move || {
            ConcurrentMap::handle(map).transact(|tx| {
                tx.insert(locked, locked)?;
                locks.send(()).unwrap();
                is_released.recv().unwrap();
                Ok(())
            });
        });
        is_locked.recv().unwrap();
        let mut releases = Some(releases);
        handle.transact(|tx| {
            attempts += 1;
            let removed = tx.remove(&key);
            let added = tx.insert(70, 70);
            met |= removed.is_err() || added.is_err();
            if let Some(releases) = releases.take() {
                releases.send(()).unwrap();
            }
            Ok(())
        });
    });
    assert!(!met || attempts > 1, "a session has met a conflict, and was committed");
    let mut left: Vec<_> = KEYS.into_iter().filter(|&other| other != key).chain([70]).collect();
    left.sort_unstable();
    let mut found = Vec::new();
    handle.snapshot(|now| now.for_each(|key, value| found.push((*key, *value))));
    found.sort_unstable();
    assert!(found.iter().all(|(key, value)| key == value), "{found:?}");
    assert!(found.iter().map(|(key, _)| *key).eq(left), "{found:?}");
    for key in KEYS {
        MapHandle::remove(&mut handle, &key);
    }
    assert_eq!(MapHandle::get(&mut handle, &70), Some(70));
}

/// A safe transaction on two objects, the second of which another thread has locked: the first must
/// stay unchanged.
fn a_half_does_not_commit<M: Sessions + Sync>(domain: &M) {
    session::scope(domain, |scope| {
        let mut member = scope.register();
        let (one, two) = (member.create(1), member.create(1));
        let ((locks, is_locked), (releases, is_released)) = (mpsc::channel(), mpsc::channel());
        thread::scope(|s| {
            s.spawn(move || {
                scope.register().run(|tx| {
                    *tx.try_lock(two)? += 1;
                    locks.send(()).unwrap();
                    is_released.recv().unwrap();
                    Ok(())
                });
            });
            is_locked.recv().unwrap();
            let half = member.attempt(|tx| {
                *tx.try_lock(one)? = 100;
                assert_eq!(tx.try_lock(two).err(), Some(Conflict::Locked));
                assert_eq!(tx.try_lock_const(two).err(), Some(Conflict::Locked));
                Ok(())
            });
            releases.send(()).unwrap();
            assert_eq!(half, Err(Conflict::Locked), "the conflict that it met");
        });
        assert_eq!(member.read(|now| (*now.deref(one), *now.deref(two))), (1, 2));
        let mut attempts = 0;
        member.run(|tx| {
            attempts += 1;
            *tx.try_lock(one)? += 1;
            Ok(())
        });
        assert_eq!((attempts, member.read(|now| *now.deref(one))), (1, 2));
    });
}

macro_rules! maps {
    ($($name:ident: $map:expr;)*) => {$(
        #[test]
        fn $name() {
            for key in [40, 90, 10, 80, 30] {
                for locked in KEYS.into_iter().filter(|&locked| locked != key) {
                    swallows(&$map, locked, key);
                }
            }
        }
    )*};
}

maps! {
    mvrlu_list: MvrluList::<u64, u64>::default();
    mvrlu_table: MvrluTable::<u64, u64>::new(2);
    mvrlu_growing: MvrluGrowingTable::<u64, u64>::default();
    mvrlu_tree: MvrluTree::<u64, u64>::default();
    rlu_list: RluList::<u64, u64>::default();
    rlu_table: RluTable::<u64, u64>::new(2);
    rlu_growing: RluGrowingTable::<u64, u64>::default();
    rlu_tree: RluTree::<u64, u64>::default();
}

#[test]
fn sessions() {
    a_half_does_not_commit(&<mvrlu::Domain>::default());
    a_half_does_not_commit(&<rlu::Domain>::default());
}

/// A key whose order panics when it is told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fuse(u64);

thread_local! {
    static LEFT: std::cell::Cell<u64> = const { std::cell::Cell::new(u64::MAX) };
}

fn burn() {
    let left = LEFT.get();
    LEFT.set(left.wrapping_sub(1));
    assert!(left != 0, "the fuse");
}

impl PartialOrd for Fuse {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fuse {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        burn();
        self.0.cmp(&other.0)
    }
}

impl std::hash::Hash for Fuse {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        burn();
        state.write_u64(self.0 % 2);
    }
}

/// A transaction catches a panic of a key in the middle of an operation, and continues. Its changes
/// do not commit in part.
fn catches<M: Sessions, P: Placement<Fuse>>(make: impl Fn() -> Versioned<Fuse, u64, M, P>) {
    const ENTRIES: u64 = 40;
    for fuse in 0..12 {
        let map = make();
        let mut handle = ConcurrentMap::handle(&map);
        (0..ENTRIES)
            .for_each(|key| _ = MapHandle::insert(&mut handle, Fuse(key * 7 % ENTRIES), key));
        let mut attempts = 0;
        handle.transact(|tx| {
            attempts += 1;
            if attempts == 1 {
                LEFT.set(fuse);
            }
            for key in (0..ENTRIES).step_by(3) {
                let remove = std::panic::AssertUnwindSafe(|| tx.remove(&Fuse(key)).map(drop));
                _ = std::panic::catch_unwind(remove);
            }
            LEFT.set(u64::MAX);
            Ok(())
        });
        assert_eq!(attempts, 2, "a panic dooms the attempt");
        let mut found = Vec::new();
        handle.snapshot(|now| now.for_each(|key, _| found.push(key.0)));
        found.sort_unstable();
        assert!(found.into_iter().eq((0..ENTRIES).filter(|key| key % 3 != 0)));
    }
}

#[test]
fn panics_that_a_transaction_catches() {
    crate::quietly(|| {
        catches(MvrluList::<Fuse, u64>::default);
        catches(MvrluTree::<Fuse, u64>::default);
        catches(|| MvrluTable::<Fuse, u64>::new(2));
        catches(MvrluGrowingTable::<Fuse, u64>::default);
        catches(RluList::<Fuse, u64>::default);
        catches(RluTree::<Fuse, u64>::default);
        catches(|| RluTable::<Fuse, u64>::new(2));
        catches(RluGrowingTable::<Fuse, u64>::default);
    });
}

//! Trees of intervals: what owners may do with intervals, and readers with their results.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use manycore::collections::interval::LockedTrees;
use manycore::lock::Adaptive;
use manycore::{Interval, ReverseMap};

fn found(map: &impl ReverseMap, tree: usize, first: u64, last: u64) -> Vec<Interval> {
    let mut found = Vec::new();
    map.overlaps(tree, first, last, &mut |interval| found.push(interval));
    found
}

fn all(map: &impl ReverseMap, tree: usize) -> usize {
    found(map, tree, 0, u64::MAX).len()
}

/// Intervals that are equal, that end before they begin, and that end where numbers do.
const ODD: [Interval; 6] = [
    Interval { first: 5, order: 0, last: 5 },
    Interval { first: 5, order: 0, last: 5 },
    Interval { first: 9, order: 1, last: 3 },
    Interval { first: 0, order: 0, last: u64::MAX },
    Interval { first: u64::MAX, order: u64::MAX, last: u64::MAX },
    Interval { first: u64::MAX, order: 0, last: 0 },
];

/// Owners end in any order, on any thread, with intervals that are in a tree and others that are
/// not.
fn owners<M: ReverseMap>(map: M) {
    for round in 0..crate::ROUNDS / 10 + 1 {
        let mut present: Vec<_> =
            ODD.iter().map(|interval| map.insert(map.interval(0, *interval))).collect();
        assert_eq!(found(&map, 0, 5, 5).len(), 3);
        assert!(found(&map, 0, 7, 6).len() <= ODD.len(), "a question without numbers");
        present.rotate_left((round % 6) as usize);
        let absent = map.remove(present.pop().expect("six of them"));
        let left = all(&map, 0);
        thread::scope(|s| {
            let map = &map;
            s.spawn(move || drop(absent));
            s.spawn(move || {
                let first = present.swap_remove(2);
                drop(map.insert(map.remove(first)));
                drop(present);
            });
        });
        assert!((4..=5).contains(&left), "{left}");
        assert_eq!(all(&map, 0), 0);
    }
    // Each goes back to its own tree, whichever map is called.
    let other = LockedTrees::<Adaptive>::new(1);
    drop(other.insert(other.interval(0, ODD[0])));
    let present = map.insert(map.interval(1, ODD[0]));
    assert_eq!((all(&map, 0), all(&map, 1), all(&other, 0)), (0, 1, 0));
    drop(present);
    assert_eq!(all(&map, 1), 0);
}

/// Forgotten intervals stay: neither they nor their neighbours are accessed wrongly, also when the
/// trees are dropped.
fn forgotten<M: ReverseMap>(map: M) {
    let first = map.insert(map.interval(0, ODD[0]));
    std::mem::forget(map.insert(map.interval(0, ODD[1])));
    std::mem::forget(map.interval(0, ODD[2]));
    let removed = map.remove(map.insert(map.interval(0, ODD[3])));
    std::mem::forget(removed);
    let last = map.insert(map.interval(0, ODD[4]));
    drop(first);
    assert_eq!(found(&map, 0, 0, u64::MAX), [ODD[1], ODD[4]]);
    drop(last);
    assert_eq!(found(&map, 0, 0, u64::MAX), [ODD[1]]);
}

/// A reading thread panics, or asks for a tree that does not exist: others go on.
fn readers<M: ReverseMap>(map: M) {
    let said = |f: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(f)).is_err();
    let present: Vec<_> = ODD.iter().map(|one| map.insert(map.interval(0, *one))).collect();
    for stop in 0..3 {
        let mut seen = 0;
        assert!(said(&mut || map.overlaps(0, 5, 5, &mut |_| {
            assert!(seen < stop, "the reader");
            seen += 1;
        })));
        assert_eq!(found(&map, 0, 5, 5).len(), 3);
    }
    assert!(said(&mut || map.overlaps(2, 0, 9, &mut |_| ())));
    assert!(said(&mut || drop(map.insert(map.interval(2, ODD[0])))));
    assert!(said(&mut || drop(map.interval(usize::MAX, ODD[0]))));
    thread::scope(|s| {
        let map = &map;
        s.spawn(move || drop(present));
        for _ in 0..2 {
            s.spawn(move || {
                crate::be_quiet();
                for number in 0..crate::ROUNDS {
                    let one = Interval { first: number % 7, order: number, last: 9 };
                    let mine = map.insert(map.interval(1, one));
                    let look = || map.overlaps(1, 0, 9, &mut |_| panic!("the reader"));
                    assert!(catch_unwind(AssertUnwindSafe(look)).is_err());
                    map.tend(1, 0);
                    drop(mine);
                }
            });
        }
    });
    assert_eq!((all(&map, 0), all(&map, 1)), (0, 0));
}

/// A reader that updates other trees of the same map, which wait for nothing that it has.
fn readers_that_update<M: ReverseMap>(map: M) {
    let one = map.insert(map.interval(0, ODD[0]));
    let mut kept = Vec::new();
    map.overlaps(0, 0, 9, &mut |interval| {
        kept.push(map.insert(map.interval(1, interval)));
        drop(map.insert(map.interval(1, interval)));
    });
    drop(one);
    assert_eq!((all(&map, 0), all(&map, 1)), (0, 1));
    drop(kept);
    assert_eq!(all(&map, 1), 0);
}

fn misused<M: ReverseMap>(name: &str, make: impl Fn() -> M) {
    println!("{name}"); // of a failure, which map it is
    owners(make());
    forgotten(make());
    readers(make());
    readers_that_update(make());
}

macro_rules! every_map {
    ($($name:literal, $trees:ident => $map:expr;)*) => {
        $(misused($name, || { let $trees = 2; $map });)*
    };
}

#[test]
fn intervals_of_every_map() {
    crate::quietly(|| {
        misused("lock", || LockedTrees::<Adaptive>::new(2));
        manycore::for_each_reverse_map!(every_map);
    });
}

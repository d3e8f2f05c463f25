//! Trees of intervals by every mechanism: reads see earlier operations, in the order of the
//! intervals, and nothing is lost with more threads than CPUs.

use std::sync::Arc;
use std::thread;

use manycore::collections::interval::{
    CombinedTrees, DeferredForest, DeferredTrees, HarrisLists, LockedTrees, LoggedTrees,
    SettledTrees,
};
use manycore::ldu::{Global, PerCore, Rooted, Table};
use manycore::lock::Adaptive;
use manycore::{Interval, ReverseMap};
use manycore_history::run::{self, Mix, Native, unless_interpreted};

const TREES: usize = 3;

fn overlaps(map: &impl ReverseMap, tree: usize, first: u64, last: u64) -> Vec<Interval> {
    let mut found = Vec::new();
    map.overlaps(tree, first, last, &mut |interval| found.push(interval));
    found
}

/// Children, which are inserted after their parents, are found after them: in whatever order the
/// log is applied.
fn children_come_after_parents(map: &impl ReverseMap) {
    let interval = |order| Interval { first: 100, order, last: 199 };
    let insert = |order| map.insert(map.interval(0, interval(order)));
    let (parent, child, grandchild) = (insert(0), insert(1), insert(2));
    // The parent is removed and inserted again, while its entry in the log is still there, or is
    // used again.
    let parent = map.insert(map.remove(parent));
    let child = map.insert(map.remove(child));
    let orders: Vec<u64> = overlaps(map, 0, 150, 150).iter().map(|found| found.order).collect();
    assert_eq!(orders, [0, 1, 2]);
    drop((parent, child, grandchild));
    assert_eq!(overlaps(map, 0, 0, u64::MAX), []);
}

/// Each thread has intervals of its own, which it finds again; in its own range it finds no others.
fn stress(map: &impl ReverseMap, threads: u64) {
    const ROUNDS: u64 = unless_interpreted(6_000, 60);
    thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let base = 1_000 * (thread + 1);
                let mut kept = Vec::new();
                for round in 0..ROUNDS / threads {
                    let tree = (round % TREES as u64) as usize;
                    let interval =
                        Interval { first: base + round % 100, order: round, last: base + 100 };
                    let present = map.insert(map.interval(tree, interval));
                    match round % 7 {
                        0 => {
                            assert!(overlaps(map, tree, base, base).len() <= 1);
                            assert!(overlaps(map, tree, base, base + 100).contains(&interval));
                            drop(present);
                            assert!(!overlaps(map, tree, base, base + 100).contains(&interval));
                        }
                        1 | 2 => kept.push(present),
                        3 => drop(map.insert(map.remove(present))),
                        _ => drop(present),
                    }
                    kept.truncate(20);
                    map.tend(tree, 100_000);
                }
            });
        }
    });
    (0..TREES).for_each(|tree| assert_eq!(overlaps(map, tree, 0, u64::MAX), []));
}

fn all(map: impl ReverseMap) {
    assert_eq!(map.trees(), TREES);
    children_come_after_parents(&map);
    [1, 4, unless_interpreted(24, 3)].into_iter().for_each(|threads| stress(&map, threads));
    // Not all at once: each read takes as many operations as there are threads.
    let mix = Mix { operations: unless_interpreted(2_000, 15), ..Mix::native(4) };
    run::check_reverse_map(Native, &mix, &map);
}

#[test]
fn under_a_lock() {
    all(LockedTrees::<Adaptive>::new(TREES));
}

#[test]
fn by_flat_combining() {
    all(CombinedTrees::new(TREES));
}

#[test]
fn deferred() {
    all(DeferredTrees::<Global, Adaptive>::new(TREES, Global::new));
    all(DeferredTrees::<PerCore, Adaptive>::new(TREES, PerCore::new));
    let table = Arc::new(Table::new(2));
    all(DeferredTrees::<_, Adaptive>::new(TREES, || Rooted::new(table.clone())));
}

#[test]
fn logged_with_the_time() {
    all(LoggedTrees::<Adaptive>::new(TREES));
}

#[test]
fn deferred_as_a_forest() {
    all(DeferredForest::<Adaptive>::new(TREES));
}

#[test]
fn settled() {
    all(SettledTrees::<Adaptive>::new(TREES));
    all(SettledTrees::<Adaptive>::per_cpu(TREES));
    all(SettledTrees::<Adaptive>::combined(TREES));
}

#[test]
fn in_lists_without_locks() {
    all(HarrisLists::new(TREES));
}

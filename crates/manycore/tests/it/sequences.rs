//! Any sequence of operations by one thread: every collection answers like the standard library's.
//! A failure is shown with as few operations as possible; `PROPTEST_CASES` sets the number of tried
//! sequences.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use manycore::collections::Sizes;
use manycore::collections::hash::{
    ChainedTable, CombinedTable, LockedTable, MvrluGrowingTable, MvrluTable, RcuTable,
    RluGrowingTable, RluTable,
};
use manycore::collections::interval::{
    CombinedTrees, DeferredForest, DeferredTrees, HarrisLists, LockedTrees, LoggedTrees,
    SettledTrees,
};
use manycore::collections::list::{CombinedList, LockedList, MvrluList, RcuList, RluList};
use manycore::collections::queue::TakeAll;
use manycore::collections::stack::TreiberStack;
use manycore::collections::tree::{CombinedTree, LockedTree, MvrluTree, RluTree};
use manycore::ldu::{Global, PerCore};
use manycore::lock::{Adaptive, Mcs};
use manycore::reclaim::Config;
use manycore::{
    ConcurrentMap, ConcurrentSet, Interval, MapHandle, ReverseMap, SetHandle, mvrlu, rlu,
};
use manycore_history::run::unless_interpreted;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// What is done to a set or a map.
#[derive(Clone, Debug)]
enum Step {
    Look(u64),
    Insert(u64),
    Remove(u64),
    /// By another handle, which is there for this only.
    InsertElsewhere(u64),
    RemoveElsewhere(u64),
    /// The handle is another one from now on.
    Renew,
}

/// A few keys, so that threads contend for them, and some that are far away.
fn key() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..24_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => key().prop_map(Step::Look),
        8 => key().prop_map(Step::Insert),
        6 => key().prop_map(Step::Remove),
        1 => key().prop_map(Step::InsertElsewhere),
        1 => key().prop_map(Step::RemoveElsewhere),
        1 => Just(Step::Renew),
    ]
}

/// Sequences of such steps; each is tried on a collection of its own.
fn for_any<S: std::fmt::Debug>(step: impl Strategy<Value = S>, test: impl Fn(&[S])) {
    let usual = ProptestConfig::default();
    let config = ProptestConfig {
        cases: unless_interpreted(usual.cases / 4, 2),
        failure_persistence: None,
        ..usual
    };
    let steps = prop::collection::vec(step, 0..unless_interpreted(300, 60));
    let outcome = TestRunner::new(config).run(&steps, |steps| {
        test(&steps);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

fn set_agrees<S: ConcurrentSet<u64>>(make: impl Fn() -> S) {
    for_any(step(), |steps| {
        let (set, mut model) = (make(), BTreeSet::new());
        let mut handle = Some(set.handle());
        for step in steps {
            let own = handle.as_mut().expect("there is always one");
            match step {
                Step::Look(key) => assert_eq!(own.contains(key), model.contains(key), "{step:?}"),
                Step::Insert(key) => assert_eq!(own.insert(*key), model.insert(*key), "{step:?}"),
                Step::Remove(key) => assert_eq!(own.remove(key), model.remove(key), "{step:?}"),
                Step::InsertElsewhere(key) => {
                    assert_eq!(set.handle().insert(*key), model.insert(*key), "{step:?}");
                }
                Step::RemoveElsewhere(key) => {
                    assert_eq!(set.handle().remove(key), model.remove(key), "{step:?}");
                }
                Step::Renew => {
                    drop(handle.take());
                    handle = Some(set.handle());
                }
            }
        }
        let mut handle = set.handle();
        (0..24).for_each(|key| assert_eq!(handle.contains(&key), model.contains(&key), "{key}"));
    });
}

macro_rules! sets {
    ($($name:ident, $structure:literal, $mechanism:literal, $sizes:ident => $make:expr;)*) => {
        mod set {
            use super::*;
            $(
                #[test]
                fn $name() {
                    let $sizes = Sizes { keys: 8, buckets: 3 };
                    set_agrees(|| $make);
                }
            )*
        }
    };
}
manycore::for_each_set!(sets);

fn map_agrees<M: ConcurrentMap<u64, u64>>(make: impl Fn() -> M) {
    for_any(step(), |steps| {
        let (map, mut model) = (make(), BTreeMap::new());
        let mut handle = Some(map.handle());
        for (value, step) in (0..).zip(steps) {
            let own = handle.as_mut().expect("there is always one");
            match step {
                Step::Look(key) => assert_eq!(own.get(key), model.get(key).copied(), "{step:?}"),
                Step::Insert(key) => {
                    assert_eq!(own.insert(*key, value), model.insert(*key, value), "{step:?}");
                }
                Step::Remove(key) => assert_eq!(own.remove(key), model.remove(key), "{step:?}"),
                Step::InsertElsewhere(key) => {
                    let before = map.handle().insert(*key, value);
                    assert_eq!(before, model.insert(*key, value), "{step:?}");
                }
                Step::RemoveElsewhere(key) => {
                    assert_eq!(map.handle().remove(key), model.remove(key), "{step:?}");
                }
                Step::Renew => {
                    drop(handle.take());
                    handle = Some(map.handle());
                }
            }
        }
        let mut handle = map.handle();
        (0..24).for_each(|key| assert_eq!(handle.get(&key), model.get(&key).copied(), "{key}"));
    });
}

macro_rules! maps {
    ($($name:ident => $make:expr;)*) => {
        mod map {
            use super::*;
            $(
                #[test]
                fn $name() {
                    map_agrees(|| $make);
                }
            )*
        }
    };
}
maps! {
    list_locked => LockedList::<u64, u64, Mcs>::default();
    hash_locked => LockedTable::<u64, u64, Mcs>::new(2);
    bst_locked => LockedTree::<u64, u64, Mcs>::default();
    list_combined => CombinedList::<u64, u64>::default();
    hash_combined => CombinedTable::<u64, u64>::new(ChainedTable::new(2));
    bst_combined => CombinedTree::<u64, u64>::default();
    list_rcu => RcuList::<u64, u64, Mcs>::new(Config::default().with_batch(2));
    hash_rcu => RcuTable::<u64, u64, Adaptive>::new(2, Config::default().with_batch(2));
    list_mvrlu => MvrluList::<u64, u64>::default();
    hash_mvrlu => MvrluTable::<u64, u64>::new(3);
    growing_mvrlu => MvrluGrowingTable::<u64, u64>::with_keys_per_bucket(mvrlu::Domain::default(), 0, 1);
    bst_mvrlu => MvrluTree::<u64, u64>::default();
    list_rlu => RluList::<u64, u64>::default();
    hash_rlu => RluTable::<u64, u64>::new(3);
    growing_rlu => RluGrowingTable::<u64, u64>::with_keys_per_bucket(rlu::Domain::default(), 0, 1);
    bst_rlu => RluTree::<u64, u64>::default();
    bst_rlu_defer => RluTree::<u64, u64>::new(rlu::Domain::deferring());
}

/// What is done to a pile.
#[derive(Clone, Copy, Debug)]
enum BagOperation {
    Push,
    Take,
}

fn bag_operation() -> impl Strategy<Value = BagOperation> {
    prop_oneof![3 => Just(BagOperation::Push), 2 => Just(BagOperation::Take)]
}

#[test]
fn a_stack_is_a_vector() {
    for_any(bag_operation(), |steps| {
        let stack = TreiberStack::new(Config::default().with_batch(2));
        let (mut handle, mut model) = (stack.handle(), Vec::new());
        for (number, step) in steps.iter().enumerate() {
            match step {
                BagOperation::Push => {
                    handle.push(Box::new(number));
                    model.push(Box::new(number));
                }
                BagOperation::Take => assert_eq!(handle.pop(), model.pop()),
            }
        }
        drop(handle);
    });
}

#[test]
fn a_queue_is_a_deque() {
    for_any(bag_operation(), |steps| {
        let (queue, mut model) = (TakeAll::new(), VecDeque::new());
        for (number, step) in steps.iter().enumerate() {
            match step {
                BagOperation::Push => {
                    queue.push(Box::new(number));
                    model.push_back(Box::new(number));
                }
                BagOperation::Take => assert!(queue.take().eq(model.drain(..))),
            }
        }
    });
}

/// The operations on trees of intervals; an existing interval is chosen by its number.
#[derive(Clone, Debug)]
enum Part {
    Insert { tree: usize, first: u64, length: u64 },
    Remove(prop::sample::Index),
    Drop(prop::sample::Index),
    Look { tree: usize, first: u64, length: u64 },
}

const TREES: usize = 2;

fn part() -> impl Strategy<Value = Part> {
    let range = || (0..TREES, 0..60_u64, 0..12_u64);
    let at = any::<prop::sample::Index>;
    prop_oneof![
        6 => range().prop_map(|(tree, first, length)| Part::Insert { tree, first, length }),
        2 => at().prop_map(Part::Remove),
        2 => at().prop_map(Part::Drop),
        3 => range().prop_map(|(tree, first, length)| Part::Look { tree, first, length }),
    ]
}

fn intervals_agree<M: ReverseMap>(make: impl Fn() -> M) {
    for_any(part(), |steps| {
        let map = make();
        let (mut present, mut model) = (Vec::new(), Vec::<(usize, Interval)>::new());
        for (order, step) in (0..).zip(steps) {
            match step {
                Part::Insert { tree, first, length } => {
                    let interval = Interval { first: *first, order, last: first + length };
                    present.push(map.insert(map.interval(*tree, interval)));
                    model.push((*tree, interval));
                }
                Part::Remove(_) | Part::Drop(_) if present.is_empty() => {}
                // Taken out and put in again: the same as before.
                Part::Remove(at) => {
                    let at = at.index(present.len());
                    let one = map.remove(present.swap_remove(at));
                    present.push(map.insert(one));
                    let moved = model.swap_remove(at);
                    model.push(moved);
                }
                Part::Drop(at) => {
                    let at = at.index(present.len());
                    drop(present.swap_remove(at));
                    model.swap_remove(at);
                }
                Part::Look { tree, first, length } => {
                    let (last, mut found) = (first + length, Vec::new());
                    map.overlaps(*tree, *first, last, &mut |interval| found.push(interval));
                    let in_reach = |(of, interval): &&(usize, Interval)| {
                        of == tree && interval.first <= last && interval.last >= *first
                    };
                    let mut expected: Vec<_> =
                        model.iter().filter(in_reach).map(|(_, interval)| *interval).collect();
                    expected.sort();
                    found.sort();
                    assert_eq!(found, expected, "{step:?}");
                }
            }
        }
    });
}

macro_rules! intervals {
    ($($name:ident => $make:expr;)*) => {
        mod intervals {
            use super::*;
            $(
                #[test]
                fn $name() {
                    intervals_agree(|| $make);
                }
            )*
        }
    };
}
intervals! {
    locked => LockedTrees::<Adaptive>::new(TREES);
    combined => CombinedTrees::new(TREES);
    deferred => DeferredTrees::<Global, Adaptive>::new(TREES, Global::new);
    deferred_per_core => DeferredTrees::<PerCore, Adaptive>::new(TREES, PerCore::new);
    forest => DeferredForest::<Adaptive>::new(TREES);
    logged => LoggedTrees::<Adaptive>::new(TREES);
    settled => SettledTrees::<Adaptive>::new(TREES);
    settled_per_cpu => SettledTrees::<Adaptive>::per_cpu(TREES);
    combining => SettledTrees::<Adaptive>::combined(TREES);
    harris => HarrisLists::new(TREES);
}

//! Every set and map on real CPUs, with as many threads as CPUs and with more, against its
//! specification.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use manycore::collections::hash::{ChainedTable, CombinedTable, LockedTable, RcuTable};
use manycore::collections::list::{
    CombinedList, HarrisList, LazyList, LockedList, RcuList, SortedList,
};
use manycore::collections::queue::TakeAll;
use manycore::collections::stack::TreiberStack;
use manycore::collections::tree::{CombinedTree, LockedTree, RcuTree, SearchTree};
use manycore::collections::{SequentialMap, Sizes};
use manycore::lock::{Adaptive, Mcs};
use manycore::reclaim::{Config, Qsbr};
use manycore::{ConcurrentMap, ConcurrentSet, MapHandle, SetHandle};
use manycore_history::run::{self, Mix, Native, unless_interpreted};
use manycore_history::specification::{First, Last, SequenceOperation};

/// Few buckets, so that keys share them.
const SIZES: Sizes = Sizes { keys: 8, buckets: 3 };

fn is_linearizable<S: ConcurrentSet<u64>>(make: impl Fn() -> S) {
    for threads in [1, 2, unless_interpreted(8, 3)] {
        run::check_set(Native, &Mix::native(threads), &make());
    }
}

macro_rules! tests {
    ($($name:ident, $structure:literal, $mechanism:literal, $sizes:ident => $make:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let $sizes = SIZES;
                is_linearizable(|| $make);
            }
        )*
    };
}
manycore::for_each_set!(tests);

#[test]
fn list_locked() {
    is_linearizable(LockedList::<u64, (), Adaptive>::default);
    run::check_map(Native, &Mix::native(4), &LockedList::<u64, u64, Mcs>::default());
}

#[test]
fn hash_locked() {
    is_linearizable(|| LockedTable::<u64, (), Adaptive>::new(SIZES.buckets));
    run::check_map(Native, &Mix::native(4), &LockedTable::<u64, u64, Mcs>::new(2));
}

#[test]
fn bst_locked() {
    is_linearizable(LockedTree::<u64, (), Adaptive>::default);
    run::check_map(Native, &Mix::native(4), &LockedTree::<u64, u64, Mcs>::default());
}

#[test]
fn combined() {
    run::check_map(Native, &Mix::native(4), &CombinedList::<u64, u64>::default());
    run::check_map(Native, &Mix::native(4), &CombinedTable::<u64, u64>::new(ChainedTable::new(2)));
    run::check_map(Native, &Mix::native(4), &CombinedTree::<u64, u64>::default());
}

#[test]
fn take_all() {
    // Many short runs: the checker judges the history of a queue as a whole, and tries the possible
    // orders of its pushes. When interpreted, only two threads push.
    for seed in 0..unless_interpreted(200, 2) {
        let queue = TakeAll::new();
        let mix = Mix {
            operations: unless_interpreted(50, 6),
            inserts: 80,
            removes: 20,
            seed,
            ..Mix::native(unless_interpreted(4, 2))
        };
        run::check_sequence::<First, _>(Native, &mix, &[SequenceOperation::TakeAll], || {
            |operation| {
                match operation {
                    SequenceOperation::Push(value) => queue.push(value),
                    _ => return queue.take().collect(),
                }
                Vec::new()
            }
        });
    }
}

#[test]
fn treiber() {
    // Many short runs, as for the queue.
    for seed in 0..unless_interpreted(200, 2) {
        let stack = TreiberStack::new(Config::default().with_batch(2));
        let mix = Mix {
            operations: unless_interpreted(50, 6),
            inserts: 50,
            removes: 50,
            seed,
            ..Mix::native(4)
        };
        run::check_sequence::<Last, _>(Native, &mix, &[SequenceOperation::Pop], || {
            |operation| {
                let mut handle = stack.handle();
                match operation {
                    SequenceOperation::Push(value) => handle.push(value),
                    _ => return handle.pop().into_iter().collect(),
                }
                Vec::new()
            }
        });
    }
}

/// More threads than CPUs push and pop: each value comes out once.
#[test]
fn a_stack_loses_nothing() {
    const EACH: usize = unless_interpreted(5_000, 60);
    let stack = TreiberStack::new(Config::default().with_batch(16));
    let taken: Vec<Arc<AtomicUsize>> = (0..8).map(|_| Arc::default()).collect();
    std::thread::scope(|scope| {
        for counts in &taken {
            let stack = &stack;
            scope.spawn(move || {
                let mut handle = stack.handle();
                for round in 0..EACH {
                    handle.push(counts.clone());
                    if round % 3 > 0 {
                        handle.pop().map(|counts| counts.fetch_add(1, Ordering::Relaxed));
                    }
                }
            });
        }
    });
    let popped: usize = taken.iter().map(|counts| counts.load(Ordering::Relaxed)).sum();
    let mut handle = stack.handle();
    let left = std::iter::from_fn(|| handle.pop()).take(100).count();
    assert_eq!(left, 100, "{popped} of {} were popped", 8 * EACH);
    drop(handle);
    let held: usize = taken.iter().map(|counts| Arc::strong_count(counts) - 1).sum();
    assert_eq!(popped + left + held, 8 * EACH);
    drop(stack);
    assert!(taken.iter().all(|counts| Arc::strong_count(counts) == 1), "dropped with the stack");
}

/// Random operations, by one thread, as on the standard library's set.
fn a_set_is_as_the_standard_librarys(mut set: impl SetHandle<u64>) {
    let (mut standard, mut random) = (BTreeSet::new(), fastrand::Rng::with_seed(1));
    for _ in 0..unless_interpreted(20_000, 300) {
        let key = random.u64(..200);
        match random.u8(..3) {
            0 => assert_eq!(set.contains(&key), standard.contains(&key)),
            1 => assert_eq!(set.insert(key), standard.insert(key)),
            _ => assert_eq!(set.remove(&key), standard.remove(&key)),
        }
    }
    (0..200).for_each(|key| assert_eq!(set.contains(&key), standard.contains(&key)));
}

macro_rules! sets_are_as_the_standard_librarys {
    ($($name:ident, $structure:literal, $mechanism:literal, $sizes:ident => $make:expr;)*) => {
        #[test]
        fn sets_are_as_the_standard_librarys() {
            $(
                let $sizes = SIZES;
                a_set_is_as_the_standard_librarys(ConcurrentSet::handle(&$make));
            )*
        }
    };
}
manycore::for_each_set!(sets_are_as_the_standard_librarys);

/// Random operations, by one thread, with the same results as the standard library's map. Values
/// own memory, which must not be lost.
fn as_the_standard_library(mut map: impl SequentialMap<u16, Box<u32>>) {
    let (mut standard, mut random) = (BTreeMap::new(), fastrand::Rng::with_seed(1));
    for value in 0..unless_interpreted(20_000, 300) {
        let key = random.u16(..200);
        match random.u8(..3) {
            0 => assert_eq!(map.get(&key), standard.get(&key).cloned()),
            1 => {
                let value = Box::new(value);
                assert_eq!(map.insert(key, value.clone()), standard.insert(key, value));
            }
            _ => assert_eq!(map.remove(&key), standard.remove(&key)),
        }
    }
    (0..200).for_each(|key| assert_eq!(map.get(&key), standard.get(&key).cloned()));
}

/// The same, through a thread's handle.
fn one_thread_is_as_the_standard_library(mut map: impl MapHandle<u16, Box<u32>>) {
    let (mut standard, mut random) = (BTreeMap::new(), fastrand::Rng::with_seed(1));
    for value in 0..unless_interpreted(20_000, 300) {
        let key = random.u16(..200);
        match random.u8(..3) {
            0 => assert_eq!(map.get(&key), standard.get(&key).cloned()),
            1 => {
                let value = Box::new(value);
                assert_eq!(map.insert(key, value.clone()), standard.insert(key, value));
            }
            _ => assert_eq!(map.remove(&key), standard.remove(&key)),
        }
    }
}

#[test]
fn maps_are_as_the_standard_librarys() {
    let list = RcuList::<u16, Box<u32>, Adaptive>::default();
    one_thread_is_as_the_standard_library(ConcurrentMap::handle(&list));
    let table = RcuTable::<u16, Box<u32>, Adaptive>::new(16, Config::default());
    one_thread_is_as_the_standard_library(ConcurrentMap::handle(&table));
}

#[test]
fn maps_without_locks_for_readers() {
    let eager = || Config::default().with_batch(2);
    let list = RcuList::<u64, u64, Mcs>::new(eager());
    run::check_map(Native, &Mix::native(8), &list);
    let table = RcuTable::<u64, u64, Adaptive>::new(2, eager());
    run::check_map(Native, &Mix::native(8), &table);
    is_linearizable(|| HarrisList::<u64>::new(eager()));
    is_linearizable(|| LazyList::<u64, Mcs>::new(eager()));
    is_linearizable(|| RcuTree::<u64, Mcs>::new(eager()));
    is_linearizable(|| RcuTable::<u64, (), Mcs, Qsbr>::new(2, eager()));
}

/// The values in a dropped list, and the values that it has given up, are each dropped once.
#[test]
fn nothing_is_lost_or_dropped_twice() {
    let counted = Arc::new(());
    {
        let list = RcuList::<u32, Arc<()>, Adaptive>::default();
        let mut handle = ConcurrentMap::handle(&list);
        (0..1_000).for_each(|key| _ = handle.insert(key % 300, counted.clone()));
        (0..100).for_each(|key| assert!(handle.remove(&key).is_some()));
    }
    assert_eq!(Arc::strong_count(&counted), 1);
    fn is_dropped_once(set: impl ConcurrentSet<Arc<u32>>) {
        let mut keys: Vec<_> = (0..300).map(Arc::new).collect();
        fastrand::Rng::with_seed(1).shuffle(&mut keys);
        {
            let mut handle = set.handle();
            keys.iter().for_each(|key| assert!(handle.insert(key.clone())));
            keys.iter().for_each(|key| assert!(!handle.insert(key.clone())));
            keys[..100].iter().for_each(|key| assert!(handle.remove(key)));
        }
        drop(set);
        assert!(keys.iter().all(|key| Arc::strong_count(key) == 1));
    }
    is_dropped_once(HarrisList::default());
    is_dropped_once(LazyList::<_, Adaptive>::default());
    is_dropped_once(RcuTree::<_, Adaptive>::default());
}

#[test]
fn structures_are_as_the_standard_librarys() {
    as_the_standard_library(SortedList::default());
    as_the_standard_library(ChainedTable::new(16));
    as_the_standard_library(SearchTree::default());
}

#[test]
fn a_deep_tree_is_dropped() {
    let mut tree = SearchTree::default();
    // A chain: as deep as there are keys.
    (0..unless_interpreted(3_000_u32, 100)).for_each(|key| drop(tree.insert(key, Box::new(key))));
    (0..unless_interpreted(3_000, 100))
        .step_by(2)
        .for_each(|key| assert_eq!(tree.remove(&key), Some(Box::new(key))));
}

/// The path to the successor is as long as there are keys on its right.
#[test]
fn a_long_way_to_the_heir() {
    let tree = RcuTree::<u32, Mcs>::default();
    let mut handle = tree.handle();
    assert!(handle.insert(0) && handle.insert(1));
    (3..unless_interpreted(3_000, 100)).rev().for_each(|key| assert!(handle.insert(key)));
    for key in [1, 3, 0, 4] {
        assert!(handle.remove(&key) && !handle.contains(&key));
        (5..unless_interpreted(3_000, 100))
            .step_by(100)
            .for_each(|key| assert!(handle.contains(&key)));
    }
}

/// A key that cannot be compared with 7.
#[derive(Debug, PartialEq, Eq)]
struct Fussy(u32);

impl PartialOrd for Fussy {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fussy {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        assert!(self.0 != 7 && other.0 != 7, "not with 7");
        self.0.cmp(&other.0)
    }
}

#[test]
fn a_comparison_that_panics_releases_the_lock() {
    let list = LockedList::<Fussy, u32, Adaptive>::default();
    let mut handle = ConcurrentMap::handle(&list);
    assert_eq!(MapHandle::insert(&mut handle, Fussy(1), 10), None);
    let insert = || MapHandle::insert(&mut ConcurrentMap::handle(&list), Fussy(7), 70);
    assert!(catch_unwind(AssertUnwindSafe(insert)).is_err());
    assert_eq!(handle.get(&Fussy(1)), Some(10), "and the list is as it was");
}

#[test]
fn a_set_says_what_it_did() {
    let list = LockedList::<u32, (), Adaptive>::default();
    let mut handle = ConcurrentSet::handle(&list);
    assert!(SetHandle::insert(&mut handle, 1) && !SetHandle::insert(&mut handle, 1));
    assert!(handle.contains(&1) && !handle.contains(&2));
    assert!(SetHandle::remove(&mut handle, &1) && !SetHandle::remove(&mut handle, &1));
}

//! Panics in functions that collections call: `Ord`, `Eq`, `Hash` and `Clone` of keys and values,
//! and their destructors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use manycore::collections::hash::{ChainedTable, CombinedTable, LockedTable, RcuTable};
use manycore::collections::list::{CombinedList, HarrisList, LazyList, LockedList, RcuList};
use manycore::collections::queue::{OrderedQueue, TakeAll};
use manycore::collections::space::{self, Map};
use manycore::collections::stack::{OrderedStack, TreiberStack};
use manycore::collections::tree::{CombinedTree, LockedTree, RcuTree};
use manycore::collections::versioned::btree::BPlus;
use manycore::lock::Adaptive;
use manycore::reclaim::{Config, Domain, Qsbr};
use manycore::{ConcurrentMap, ConcurrentSet, MapHandle, SetHandle, rlu};

use crate::live::{Live, live, with_fuse};

/// In an order in which a tree has nodes with two sides, with heirs at all depths.
const KEYS: [u64; 9] = [10, 5, 40, 30, 20, 15, 12, 50, 45];

/// Which of an operation's calls panic: each, or in the interpreter some.
const STEP: usize = if cfg!(miri) { 6 } else { 1 };

/// Each call of an operation's callbacks panics once, in a run of its own: then the operation was
/// done, or was not, and nothing else.
fn calls_panic_in_a_set<S: ConcurrentSet<Live>>(make: impl Fn() -> S) {
    let leaked = live(|| {
        for fuse in (1..20).step_by(STEP) {
            for key in KEYS.into_iter().chain([0, 13, 99]).step_by(STEP) {
                let set = make();
                let mut handle = set.handle();
                KEYS.iter().for_each(|&key| _ = handle.insert(Live::new(key)));
                let done = [
                    with_fuse(fuse, || handle.contains(&Live::new(key))),
                    with_fuse(fuse, || handle.insert(Live::new(key))),
                    with_fuse(fuse, || handle.remove(&Live::new(key))),
                ];
                let is_known = done[2].is_ok();
                for other in KEYS.into_iter().filter(|other| *other != key) {
                    assert!(handle.contains(&Live::new(other)), "{other} is lost");
                }
                let is_there = handle.contains(&Live::new(key));
                assert!(!(is_known && is_there), "{key} was removed");
                assert_eq!(handle.remove(&Live::new(key)), is_there);
                assert!(handle.insert(Live::new(key)) && !handle.insert(Live::new(key)));
            }
        }
    });
    assert_eq!(leaked, 0);
}

fn calls_panic_in_a_map<M: ConcurrentMap<Live, Live>>(make: impl Fn() -> M) {
    let leaked = live(|| {
        for fuse in (1..20).step_by(STEP) {
            for key in [10, 12, 50, 13] {
                let map = make();
                let mut handle = map.handle();
                KEYS.iter().for_each(|&key| _ = handle.insert(Live::new(key), Live::new(key)));
                _ = with_fuse(fuse, || handle.get(&Live::new(key)));
                _ = with_fuse(fuse, || handle.insert(Live::new(key), Live::new(key)));
                _ = with_fuse(fuse, || handle.remove(&Live::new(key)));
                for other in KEYS.into_iter().filter(|other| *other != key) {
                    let value = handle.get(&Live::new(other)).expect("no other key is lost");
                    assert_eq!(*value.number, other);
                }
                assert!(handle.get(&Live::new(key)).is_none_or(|value| *value.number == key));
            }
        }
    });
    assert_eq!(leaked, 0);
}

/// One of them panics when it is dropped, wherever that happens: the others are dropped all the
/// same.
fn ends_panic_in_a_set<S: ConcurrentSet<Live>>(make: impl Fn() -> S) {
    let leaked = live(|| {
        for bad in KEYS {
            for removed in [0, 3, KEYS.len()] {
                let set = make();
                let mut handle = set.handle();
                for key in KEYS {
                    let key = if key == bad { Live::panicking(key) } else { Live::new(key) };
                    assert!(handle.insert(key));
                }
                for key in &KEYS[..removed] {
                    let key = Live::new(*key);
                    _ = catch_unwind(AssertUnwindSafe(|| handle.remove(&key)));
                }
                _ = catch_unwind(AssertUnwindSafe(|| drop(handle)));
                _ = catch_unwind(AssertUnwindSafe(|| drop(set)));
            }
        }
    });
    assert_eq!(leaked, 0, "what comes after the first panic");
}

/// The same for values: some panic when they are dropped, wherever that happens.
fn ends_panic_in_a_map<M: ConcurrentMap<u64, Live>>(make: impl Fn() -> M) {
    let leaked = live(|| {
        let map = make();
        let mut handle = map.handle();
        for number in 0..10 * crate::ROUNDS {
            let value = match number % 7 {
                0 => Live::panicking(number),
                _ => Live::new(number),
            };
            _ = catch_unwind(AssertUnwindSafe(|| drop(handle.insert(number % 20, value))));
            _ = catch_unwind(AssertUnwindSafe(|| drop(handle.get(&(number % 13)))));
            _ = catch_unwind(AssertUnwindSafe(|| drop(handle.remove(&(number % 11)))));
        }
        _ = catch_unwind(AssertUnwindSafe(|| drop(handle)));
        _ = catch_unwind(AssertUnwindSafe(|| drop(map)));
    });
    assert_eq!(leaked, 0);
}

#[test]
fn values_panic_at_their_end() {
    crate::quietly(|| {
        ends_panic_in_a_map(LockedList::<u64, Live, Adaptive>::default);
        ends_panic_in_a_map(CombinedList::<u64, Live>::default);
        ends_panic_in_a_map(RcuList::<u64, Live, Adaptive>::default);
        ends_panic_in_a_map(RcuList::<u64, Live, Adaptive, Qsbr>::default);
        ends_panic_in_a_map(|| RcuTable::<u64, Live, Adaptive>::new(3, Config::default()));
        ends_panic_in_a_map(LockedTree::<u64, Live, Adaptive>::default);
        ends_panic_in_a_map(CombinedTree::<u64, Live>::default);
        ends_panic_in_a_map(Map::<u64, Live, BPlus<3, 3>>::default);
        ends_panic_in_a_map(Map::<u64, Live, BPlus<3, 3>, rlu::Domain>::default);
        ends_panic_in_a_map(space::ArtMap::<u64, Live>::default);
        ends_panic_in_a_map(space::HashMap::<u64, Live>::default);
    });
}

macro_rules! sets {
    ($($name:ident: $make:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn calls_panic() {
                crate::quietly(|| calls_panic_in_a_set(|| $make));
            }

            #[test]
            fn ends_panic() {
                crate::quietly(|| ends_panic_in_a_set(|| $make));
            }
        }
    )*};
}

sets! {
    list_locked: LockedList::<Live, (), Adaptive>::default();
    list_combined: CombinedList::<Live, ()>::default();
    list_rcu: RcuList::<Live, (), Adaptive>::default();
    list_rcu_qsbr: RcuList::<Live, (), Adaptive, Qsbr>::default();
    list_lazy: LazyList::<Live, Adaptive>::default();
    list_harris: HarrisList::<Live>::default();
    hash_locked: LockedTable::<Live, (), Adaptive>::new(3);
    hash_combined: CombinedTable::<Live, ()>::new(ChainedTable::new(3));
    hash_rcu: RcuTable::<Live, (), Adaptive>::new(3, Config::default());
    tree_locked: LockedTree::<Live, (), Adaptive>::default();
    tree_combined: CombinedTree::<Live, ()>::default();
    tree_rcu: RcuTree::<Live, Adaptive>::default();
    tree_space: Map::<Live, (), BPlus<3, 3>>::default();
    art_space: space::ArtMap::<Live, ()>::default();
    table_space: space::HashMap::<Live, ()>::default();
    tree_rcu_qsbr: RcuTree::<Live, Adaptive, Qsbr>::default();
}

macro_rules! maps {
    ($($name:ident: $make:expr;)*) => {$(
        #[test]
        fn $name() {
            crate::quietly(|| calls_panic_in_a_map(|| $make));
        }
    )*};
}

maps! {
    map_list_locked: LockedList::<Live, Live, Adaptive>::default();
    map_list_combined: CombinedList::<Live, Live>::default();
    map_list_rcu: RcuList::<Live, Live, Adaptive>::default();
    map_hash_locked: LockedTable::<Live, Live, Adaptive>::new(3);
    map_hash_combined: CombinedTable::<Live, Live>::new(ChainedTable::new(3));
    map_hash_rcu: RcuTable::<Live, Live, Adaptive>::new(3, Config::default());
    map_tree_locked: LockedTree::<Live, Live, Adaptive>::default();
    map_tree_combined: CombinedTree::<Live, Live>::default();
    map_space_tree: Map::<Live, Live, BPlus<3, 3>>::default();
    map_space_tree_rlu: Map::<Live, Live, BPlus<3, 3>, rlu::Domain>::default();
    map_space_art: space::ArtMap::<Live, Live>::default();
    map_space_art_rlu: space::ArtMap::<Live, Live, rlu::Domain>::default();
    map_space_table: space::HashMap::<Live, Live>::default();
}

/// Values, the middle one of which panics when it is dropped.
fn values() -> impl Iterator<Item = Live> {
    (0..9).map(|n| if n == 4 { Live::panicking(n) } else { Live::new(n) })
}

/// The remaining values drop with the structure, and one of them panics.
fn ends<T>(make: impl FnOnce() -> T) {
    let leaked = live(|| {
        let value = make();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(value))).is_err());
    });
    assert_eq!(leaked, 0);
}

#[test]
fn values_panic_with_their_stack_or_queue() {
    crate::quietly(|| {
        ends(|| {
            let stack = TreiberStack::<Live>::default();
            values().for_each(|value| stack.handle().push(value));
            stack
        });
        ends(|| {
            let stack = OrderedStack::<Live>::default();
            values().for_each(|value| stack.handle().push(value));
            stack
        });
        ends(|| {
            let queue = OrderedQueue::<Live>::default();
            values().for_each(|value| queue.handle().push(value));
            queue
        });
        ends(|| {
            let queue = TakeAll::<Live>::new();
            values().for_each(|value| queue.push(value));
            queue
        });
        ends(|| {
            let queue = TakeAll::<Live>::new();
            values().for_each(|value| queue.push(value));
            let mut taken = queue.take();
            drop(taken.next());
            taken
        });
    });
}

#[test]
fn deferred_functions_panic_with_their_domain() {
    crate::quietly(|| {
        for is_pinned in [true, false] {
            ends(|| {
                let domain = Domain::new(Config::default());
                let handle = domain.register();
                let guard = handle.pin();
                for value in values() {
                    guard.defer(move || drop(value));
                }
                if is_pinned {
                    guard.defer(|| {});
                }
                drop(guard);
                drop(handle);
                domain
            });
        }
    });
}

/// One of many deferred functions panics in the thread that runs it; all run, once.
#[test]
fn deferred_functions_panic() {
    crate::quietly(|| {
        let leaked = live(|| {
            let domain = Domain::new(Config::default());
            let mut handle = domain.register();
            for number in 0..10 * crate::ROUNDS {
                let value = Live::new(number);
                let section = || {
                    handle
                        .pin()
                        .defer(move || assert!(!value.number.is_multiple_of(9), "the function"));
                };
                _ = catch_unwind(AssertUnwindSafe(section));
            }
            while catch_unwind(AssertUnwindSafe(|| handle.synchronize())).is_err() {}
            assert_eq!(domain.held_bytes(), 0);
        });
        assert_eq!(leaked, 0);
    });
}

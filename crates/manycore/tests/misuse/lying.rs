//! Safe traits that are implemented inconsistently: `Ord`, `Eq` and `Hash` that say something else
//! each time, `Extend` that stops early.

use std::cell::Cell;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use manycore::collections::hash::{ChainedTable, CombinedTable, LockedTable, RcuTable};
use manycore::collections::list::{CombinedList, HarrisList, LazyList, LockedList, RcuList};
use manycore::collections::queue::OrderedQueue;
use manycore::collections::space::{self, ArtKey, Map};
use manycore::collections::stack::OrderedStack;
use manycore::collections::tree::{CombinedTree, LockedTree, RcuTree};
use manycore::collections::versioned::btree::BPlus;
use manycore::lock::Adaptive;
use manycore::reclaim::{Config, Qsbr};
use manycore::{ConcurrentMap, ConcurrentSet, MapHandle, SetHandle, rlu};

use crate::live::{Live, live};

thread_local! {
    static RANDOM: Cell<u64> = const { Cell::new(1) };
}

/// The same numbers in each run.
fn random() -> u64 {
    let next = RANDOM.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    RANDOM.set(next);
    next >> 33
}

/// A key that is what it likes.
#[derive(Clone)]
struct Liar(Live);

impl Liar {
    fn new(number: u64) -> Self {
        Self(Live::new(number))
    }
}

impl PartialEq for Liar {
    fn eq(&self, _: &Self) -> bool {
        random().is_multiple_of(3)
    }
}

impl Eq for Liar {}

impl PartialOrd for Liar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Liar {
    fn cmp(&self, other: &Self) -> Ordering {
        assert!(*self.0.number < 1000 && *other.0.number < 1000, "a key after its end");
        match random() % 5 {
            0 => Ordering::Equal,
            1 | 2 => Ordering::Less,
            _ => Ordering::Greater,
        }
    }
}

/// They depend on the same bytes only sometimes, or only at the beginning.
impl ArtKey for Liar {
    type Bytes<'a> = Vec<u8>;

    fn bytes(&self) -> Vec<u8> {
        assert!(*self.0.number < 1000, "a key after its end");
        let same = vec![7; random() as usize % 20];
        let other = (0..random() % 3).map(|_| (random() % 100) as u8);
        same.into_iter().chain(other).collect()
    }
}

impl Hash for Liar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        random().hash(state);
    }
}

/// Whatever they answer, each key is dropped once, and no thread waits for ever.
fn lies_in_a_set<S: ConcurrentSet<Liar>>(make: impl Fn() -> S) {
    let leaked = live(|| {
        let set = make();
        let mut handle = set.handle();
        for number in 0..10 * crate::ROUNDS {
            let number = number % 1000;
            _ = handle.insert(Liar::new(number));
            _ = handle.insert(Liar::new(number));
            _ = handle.contains(&Liar::new(number));
            _ = handle.remove(&Liar::new(number));
        }
    });
    assert_eq!(leaked, 0);
}

fn lies_in_a_map<M: ConcurrentMap<Liar, Live>>(make: impl Fn() -> M) {
    let leaked = live(|| {
        let map = make();
        let mut handle = map.handle();
        for number in 0..10 * crate::ROUNDS {
            let number = number % 1000;
            _ = handle.insert(Liar::new(number), Live::new(number));
            _ = handle.get(&Liar::new(number)).is_none_or(|found| *found.number < 1000);
            _ = handle.remove(&Liar::new(number));
        }
    });
    assert_eq!(leaked, 0);
}

macro_rules! lies {
    ($check:ident: $($name:ident: $make:expr;)*) => {$(
        #[test]
        fn $name() {
            $check(|| $make);
        }
    )*};
}

lies! { lies_in_a_set:
    list_locked: LockedList::<Liar, (), Adaptive>::default();
    list_combined: CombinedList::<Liar, ()>::default();
    list_rcu: RcuList::<Liar, (), Adaptive>::default();
    list_lazy: LazyList::<Liar, Adaptive>::default();
    list_harris: HarrisList::<Liar>::default();
    hash_locked: LockedTable::<Liar, (), Adaptive>::new(3);
    hash_combined: CombinedTable::<Liar, ()>::new(ChainedTable::new(3));
    hash_rcu: RcuTable::<Liar, (), Adaptive>::new(3, Config::default());
    tree_locked: LockedTree::<Liar, (), Adaptive>::default();
    tree_combined: CombinedTree::<Liar, ()>::default();
    tree_rcu: RcuTree::<Liar, Adaptive>::default();
    tree_rcu_qsbr: RcuTree::<Liar, Adaptive, Qsbr>::default();
}

lies! { lies_in_a_map:
    map_list_locked: LockedList::<Liar, Live, Adaptive>::default();
    map_list_rcu: RcuList::<Liar, Live, Adaptive>::default();
    map_hash_locked: LockedTable::<Liar, Live, Adaptive>::new(3);
    map_hash_combined: CombinedTable::<Liar, Live>::new(ChainedTable::new(3));
    map_hash_rcu: RcuTable::<Liar, Live, Adaptive>::new(3, Config::default());
    map_tree_locked: LockedTree::<Liar, Live, Adaptive>::default();
    map_tree_combined: CombinedTree::<Liar, Live>::default();
    map_space_tree: Map::<Liar, Live, BPlus<3, 3>>::default();
    map_space_tree_rlu: Map::<Liar, Live, BPlus<3, 3>, rlu::Domain>::default();
    map_space_art: space::ArtMap::<Liar, Live>::default();
    map_space_art_rlu: space::ArtMap::<Liar, Live, rlu::Domain>::default();
    map_space_table: space::HashMap::<Liar, Live>::default();
}

/// Takes fewer items than it is given, forgets their origin, panics, or asks when there are no
/// more.
struct Picky(u64, Vec<Live>);

impl Extend<Live> for Picky {
    fn extend<I: IntoIterator<Item = Live>>(&mut self, all: I) {
        let mut all = all.into_iter();
        self.0 += 1;
        match self.0 % 4 {
            0 => {
                self.1.extend(all.next());
                std::mem::forget(all);
            }
            1 => {
                self.1.extend(all.next());
                panic!("takes no more");
            }
            2 => {}
            _ => {
                for value in all.by_ref() {
                    self.1.push(value);
                    if self.1.len().is_multiple_of(5) {
                        break;
                    }
                }
                self.1.extend(all.by_ref());
                assert!(all.next().is_none());
            }
        }
    }
}

/// Each value comes out once, to the thread that asked for it or to a later one.
#[test]
fn who_takes_several_takes_less() {
    macro_rules! takes {
        ($ordered:expr) => {{
            let ordered = $ordered;
            let mut handle = ordered.handle();
            let mut picky = Picky(0, Vec::new());
            for number in 0..10 * crate::ROUNDS {
                handle.push(Live::new(number));
                if number.is_multiple_of(3) {
                    let take = || ordered.pop_into(7, &mut picky);
                    _ = catch_unwind(AssertUnwindSafe(take));
                }
            }
            let mut numbers: Vec<u64> = picky.1.iter().map(|value| *value.number).collect();
            numbers.extend(std::iter::from_fn(|| ordered.pop()).map(|value| *value.number));
            numbers.sort_unstable();
            let expected: Vec<u64> = (0..10 * crate::ROUNDS).collect();
            assert_eq!(numbers, expected);
        }};
    }
    crate::quietly(|| {
        let leaked = live(|| {
            takes!(OrderedQueue::<Live>::default());
            takes!(OrderedStack::<Live>::default());
        });
        assert_eq!(leaked, 0);
    });
}

//! Every set and map: an order explains the threads' results.

use manycore_history::run::{self, Explored, Mix};
use manycore_history::specification::{First, Last, SequenceOperation};
use manycore_simulated::ConcurrentSet;
use manycore_simulated::collections::Sizes;
use manycore_simulated::collections::hash::{GrowingTable, LockedTable};
use manycore_simulated::collections::list::{HarrisList, LazyList, LockedList, RcuList};
use manycore_simulated::collections::queue::TakeAll;
use manycore_simulated::collections::stack::TreiberStack;
use manycore_simulated::collections::tree::{LockedTree, RcuTree};
use manycore_simulated::lock::{Adaptive, Mcs};
use manycore_simulated::reclaim::Config;
use manycore_simulated::{mvrlu, rlu};

use crate::explore;

const SIZES: Sizes = Sizes { keys: 3, buckets: 2 };

fn is_linearizable<S: ConcurrentSet<u64>>(make: impl Fn() -> S) {
    for seed in 0..3 {
        let mix = Mix::explored(2 + seed as u32 % 2, seed);
        explore().schedules(1000).check(|| run::check_set(Explored, &mix, &make()));
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
manycore_simulated::for_each_set!(tests);

/// Each node is freed as early as possible.
fn eager() -> Config {
    Config::default().with_batch(1)
}

#[test]
fn list_rcu_eager() {
    is_linearizable(|| RcuList::<u64, (), Adaptive>::new(eager()));
    let mix = Mix::explored(3, 1);
    explore().schedules(1000).check(|| {
        run::check_map(Explored, &mix, &RcuList::<u64, u64, Adaptive>::new(eager()));
    });
}

#[test]
fn list_harris_eager() {
    is_linearizable(|| HarrisList::<u64>::new(eager()));
}

#[test]
fn list_lazy_eager() {
    is_linearizable(|| LazyList::<u64, Adaptive>::new(eager()));
}

/// More keys, so that there are nodes with two sides.
#[test]
fn bst_rcu_eager() {
    for seed in 0..3 {
        let mix =
            Mix { operations: 6, keys: 6, inserts: 60, removes: 35, ..Mix::explored(3, seed) };
        explore().schedules(1000).check(|| {
            run::check_set(Explored, &mix, &RcuTree::<u64, Adaptive>::new(eager()));
        });
    }
}

#[test]
fn list_locked() {
    is_linearizable(LockedList::<u64, (), Adaptive>::default);
    let mix = Mix::explored(3, 1);
    explore().schedules(300).check(|| {
        run::check_map(Explored, &mix, &LockedList::<u64, u64, Mcs>::default());
    });
}

#[test]
fn hash_locked() {
    is_linearizable(|| LockedTable::<u64, (), Adaptive>::new(SIZES.buckets));
}

/// The table begins with one bucket, and gets one more for each key.
#[test]
fn hash_growing() {
    for seed in 0..3 {
        let mix =
            Mix { operations: 6, keys: 6, inserts: 60, removes: 25, ..Mix::explored(3, seed) };
        explore().schedules(700).check(|| {
            let domain = <mvrlu::Domain>::default();
            run::check_set(Explored, &mix, &GrowingTable::with_keys_per_bucket(domain, 0, 1));
        });
        explore().schedules(700).check(|| {
            let domain = <rlu::Domain>::default();
            run::check_set(Explored, &mix, &GrowingTable::with_keys_per_bucket(domain, 0, 1));
        });
    }
}

#[test]
fn bst_locked() {
    is_linearizable(LockedTree::<u64, (), Adaptive>::default);
}

#[test]
fn take_all() {
    for seed in 0..3 {
        let mix = Mix { inserts: 70, removes: 30, ..Mix::explored(3, seed) };
        explore().schedules(1000).check(|| {
            let queue = TakeAll::new();
            run::check_sequence::<First, _>(Explored, &mix, &[SequenceOperation::TakeAll], || {
                |operation| {
                    match operation {
                        SequenceOperation::Push(value) => queue.push(value),
                        _ => return queue.take().collect(),
                    }
                    Vec::new()
                }
            });
        });
    }
}

#[test]
fn treiber() {
    for seed in 0..3 {
        let mix = Mix { inserts: 55, removes: 45, ..Mix::explored(3, seed) };
        explore().schedules(1000).check(|| {
            let stack = TreiberStack::new(eager());
            run::check_sequence::<Last, _>(Explored, &mix, &[SequenceOperation::Pop], || {
                |operation| {
                    let mut handle = stack.handle();
                    match operation {
                        SequenceOperation::Push(value) => handle.push(value),
                        _ => return handle.pop().into_iter().collect(),
                    }
                    Vec::new()
                }
            });
        });
    }
}

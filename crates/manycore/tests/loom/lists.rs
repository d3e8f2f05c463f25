//! Lists that are read without a lock: operations of two threads at one place keep the list
//! consistent.

use std::sync::Arc;

use loom::thread;
use manycore::collections::interval::HarrisLists;
use manycore::collections::list::{HarrisList, LazyList, RcuList};
use manycore::collections::tree::RcuTree;
use manycore::lock::Tas;
use manycore::reclaim::Qsbr;
use manycore::{ConcurrentSet, Interval, ReverseMap, SetHandle};

use crate::check;

type Op = fn(&mut dyn SetHandle<u32>) -> bool;

/// Threads operate on a set of 2 and 4; returns their results, and the final contents of the set,
/// out of 1 to 4.
fn meet<S, const N: usize>(set: S, started: [Op; N], own: Op) -> (Vec<bool>, Vec<u32>)
where
    S: ConcurrentSet<u32> + Send + 'static,
{
    let set = Arc::new(set);
    {
        let mut handle = set.handle();
        assert!(handle.insert(2) && handle.insert(4));
    }
    let started = started.map(|op| {
        let set = set.clone();
        thread::spawn(move || op(&mut set.handle()))
    });
    let own = own(&mut set.handle());
    let mut told: Vec<_> = started.into_iter().map(|thread| thread.join().unwrap()).collect();
    told.push(own);
    let mut handle = set.handle();
    (told, (1..=4).filter(|key| handle.contains(key)).collect())
}

fn insert_3(set: &mut dyn SetHandle<u32>) -> bool {
    set.insert(3)
}

fn remove_2(set: &mut dyn SetHandle<u32>) -> bool {
    set.remove(&2)
}

fn remove_4(set: &mut dyn SetHandle<u32>) -> bool {
    set.remove(&4)
}

fn insert_1(set: &mut dyn SetHandle<u32>) -> bool {
    set.insert(1)
}

fn has_4(set: &mut dyn SetHandle<u32>) -> bool {
    set.contains(&4)
}

fn has_3(set: &mut dyn SetHandle<u32>) -> bool {
    set.contains(&3)
}

macro_rules! tests {
    ($($module:ident: $set:ty),*) => {
        $(
            mod $module {
                use super::*;

                #[test]
                fn put_in_behind_what_is_taken_out() {
                    check(2, || {
                        let (told, left) = meet(<$set>::default(), [remove_2], insert_3);
                        assert_eq!((told, left), (vec![true, true], vec![3, 4]));
                    });
                }

                #[test]
                fn take_out_neighbours() {
                    check(2, || {
                        let (told, left) = meet(<$set>::default(), [remove_2], remove_4);
                        assert_eq!((told, left), (vec![true, true], vec![]));
                    });
                }

                #[test]
                fn one_of_two_puts_in() {
                    check(2, || {
                        let (told, left) = meet(<$set>::default(), [insert_3], insert_3);
                        assert!(told[0] != told[1]);
                        assert_eq!(left, [2, 3, 4]);
                    });
                }

                #[test]
                fn one_of_two_takes_out() {
                    check(2, || {
                        let (told, left) = meet(<$set>::default(), [remove_2], remove_2);
                        assert!(told[0] != told[1]);
                        assert_eq!(left, [4]);
                    });
                }

                #[test]
                fn look_past_what_is_put_in_front() {
                    check(2, || {
                        let (told, left) = meet(<$set>::default(), [insert_1], has_4);
                        assert_eq!((told, left), (vec![true, true], vec![1, 2, 4]));
                    });
                }

                /// One thread finds the key of another on a path on which a third one has unlinked
                /// a node.
                #[test]
                fn look_past_both() {
                    check(2, || {
                        let (told, left) = meet(<$set>::default(), [insert_3, remove_2], has_4);
                        assert_eq!((told, left), (vec![true, true, true], vec![3, 4]));
                    });
                }

                #[test]
                fn look_at_what_is_put_in() {
                    check(2, || {
                        let (told, left) = meet(<$set>::default(), [insert_3], has_3);
                        assert!(told[0]);
                        assert_eq!(left, [2, 3, 4]);
                    });
                }
            }
        )*
    };
}
tests!(
    harris: HarrisList<u32>,
    rcu: RcuList<u32, (), Tas>,
    lazy: LazyList<u32, Tas>,
    tree: RcuTree<u32, Tas>
);

/// One thread inserts a key, and then removes another one. A thread that does not find the second
/// key finds the first. The sections have no fences in this model.
#[test]
fn what_was_before_a_removal() {
    check(2, || {
        let set = Arc::new(LazyList::<u32, Tas, Qsbr>::default());
        assert!(set.handle().insert(2));
        let writer = {
            let set = set.clone();
            thread::spawn(move || {
                let mut handle = set.handle();
                assert!(handle.insert(3) && handle.remove(&2));
            })
        };
        let mut handle = set.handle();
        let found = handle.contains(&2) || handle.contains(&3);
        // The panic comes when no other thread is left: unwinding frees the other thread's data.
        drop(handle);
        writer.join().unwrap();
        assert!(found, "a removal is seen, and not what was before it");
    });
}

/// The root of a tree, which has two children, is removed; another thread operates on the way to
/// its heir.
fn raise_heir(own: Op, left: &'static [u32]) {
    check(2, move || {
        let tree = Arc::new(RcuTree::<u32, Tas>::default());
        [4, 2, 8, 6].iter().for_each(|key| assert!(tree.handle().insert(*key)));
        let remover = {
            let tree = tree.clone();
            thread::spawn(move || assert!(tree.handle().remove(&4)))
        };
        let mut handle = tree.handle();
        assert!(own(&mut handle));
        remover.join().unwrap();
        let found: Vec<_> = (1..=9).filter(|key| handle.contains(key)).collect();
        assert_eq!(found, left);
    });
}

#[test]
fn keys_are_found_while_an_heir_is_raised() {
    raise_heir(|set| set.contains(&6), &[2, 6, 8]);
    raise_heir(|set| set.contains(&8), &[2, 6, 8]);
}

#[test]
fn another_heir() {
    raise_heir(|set| set.insert(5), &[2, 5, 6, 8]);
    raise_heir(|set| set.remove(&6), &[2, 8]);
    raise_heir(|set| set.remove(&8), &[2, 6]);
}

fn interval(order: u64) -> Interval {
    Interval { first: 7, order, last: 7 }
}

fn orders(map: &HarrisLists) -> Vec<u64> {
    let mut orders = Vec::new();
    map.overlaps(0, 7, 7, &mut |found| orders.push(found.order));
    orders
}

/// Two remove neighbours, and insert at one place.
#[test]
fn intervals_come_and_go() {
    check(2, || {
        let map = Arc::new(HarrisLists::new(1));
        let other = {
            let map = map.clone();
            thread::spawn(move || {
                drop(map.insert(map.interval(0, interval(1))));
                let kept = map.insert(map.interval(0, interval(2)));
                assert!(orders(&map).contains(&2));
                drop(kept);
            })
        };
        let own = map.insert(map.interval(0, interval(3)));
        assert!(orders(&map).contains(&3));
        drop(own);
        other.join().unwrap();
        assert!(orders(&map).is_empty());
    });
}

/// Two threads remove adjacent keys at the same time. Nothing is left, and nothing is freed twice.
#[test]
fn neighbouring_intervals_go() {
    check(2, || {
        // Leaked on purpose: the referents of a model's thread have to live for ever.
        let map: &'static HarrisLists = Box::leak(Box::new(HarrisLists::new(1)));
        let [one, two, three] = [1, 2, 3].map(|order| map.insert(map.interval(0, interval(order))));
        let other = thread::spawn(move || drop(two));
        drop(three);
        other.join().unwrap();
        assert_eq!(orders(map), [1]);
        drop(one);
        assert!(orders(map).is_empty());
        // SAFETY: from a box, and no thread has it any more.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(map).cast_mut()) });
    });
}

/// Two threads on one core; one of them has to take the other's handle, or takes its own after the
/// other.
#[test]
fn two_at_one_cpu_handle() {
    check(2, || {
        let map = Arc::new(HarrisLists::new(1));
        let other = {
            let map = map.clone();
            thread::spawn(move || {
                manycore::sync::cpu::run_on(0);
                drop(map.insert(map.interval(0, interval(1))));
            })
        };
        manycore::sync::cpu::run_on(0);
        let own = map.insert(map.interval(0, interval(2)));
        assert!(orders(&map).contains(&2));
        drop(own);
        other.join().unwrap();
    });
}

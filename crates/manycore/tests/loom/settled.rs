//! Trees whose updates wait for walks: no walk visits a removed entry, and no entry is lost.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use manycore::collections::interval::SettledTrees;
use manycore::lock::Tas;
use manycore::{Interval, ReverseMap};

use crate::check;

type Trees = SettledTrees<Tas>;

const MAKERS: [fn(usize) -> Trees; 3] = [Trees::new, Trees::per_cpu, Trees::combined];

fn interval(order: u64) -> Interval {
    Interval { first: 7, order, last: 9 }
}

fn orders(map: &Trees) -> Vec<u64> {
    let mut orders = Vec::new();
    map.overlaps(0, 7, 7, &mut |found| orders.push(found.order));
    orders
}

/// What a walk reads of an interval that it meets.
struct Pages(UnsafeCell<u32>);

// SAFETY: the owner writes it when no walk meets the interval: the checker looks.
unsafe impl Send for Pages {}
// SAFETY: the owner writes it when no walk meets the interval: the checker reports a race.
unsafe impl Sync for Pages {}

#[test]
fn what_is_removed_is_walked_by_nobody() {
    for make in MAKERS {
        check(2, move || {
            let (map, pages) = (Arc::new(make(1)), Arc::new(Pages(UnsafeCell::new(0))));
            let own = map.insert(map.interval(0, interval(1)));
            let other = {
                let (map, pages) = (map.clone(), pages.clone());
                thread::spawn(move || {
                    map.overlaps(0, 7, 7, &mut |_| {
                        // SAFETY: the owner waits for this walk, or it does not meet the interval:
                        // the checker looks.
                        pages.0.with(|pages| assert_eq!(unsafe { *pages }, 0));
                    });
                })
            };
            let absent = map.remove(own);
            // SAFETY: no walk meets the interval: the checker looks.
            pages.0.with_mut(|pages| unsafe { *pages = 1 });
            drop(absent);
            other.join().unwrap();
            assert!(orders(&map).is_empty());
        });
    }
}

#[test]
fn settled_intervals_come_and_go() {
    for make in MAKERS {
        check(2, move || {
            let map = Arc::new(make(1));
            let other = {
                let map = map.clone();
                thread::spawn(move || {
                    let kept = map.insert(map.interval(0, interval(2)));
                    assert!(orders(&map).contains(&2));
                    drop(kept);
                })
            };
            drop(map.insert(map.interval(0, interval(3))));
            other.join().unwrap();
            assert!(orders(&map).is_empty());
        });
    }
}

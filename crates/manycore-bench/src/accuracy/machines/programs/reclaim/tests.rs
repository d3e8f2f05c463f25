//! Tests that no node is freed while a thread can read it, that other nodes are freed, and that the
//! lists are sets.

use std::cell::Cell;

use manycore_sim::explore;
use manycore_sim::thread;
use manycore_simulated::sync::atomic::{AtomicPtr, Ordering};

use super::epochs::{Epochs, Leak, Quiescence};
use super::hazard::Pointers;
use super::intervals::{Eras, Interval};
use super::lists::Lists;
use super::scheme::{Access, Clock, Node, Pace, Retired, Scheme};

/// Each allocation begins a new era, and after each removal the thread tries to free nodes.
const OFTEN: Pace = Pace { era: 1, frees: 1 };

/// Two threads insert and remove keys, while a third looks one up. Returns whether any of them has
/// read a node that was freed.
fn few_keys<S: Scheme>() -> bool {
    let lists = Lists::<S>::new(3, 1, OFTEN);
    lists.handle().insert(2);
    thread::parallel(3, |me| {
        let mut handle = lists.handle();
        for round in 0..3 {
            match (me, round % 2) {
                (2, _) => _ = handle.get(3),
                (_, 0) => _ = handle.remove(2) | handle.insert(u64::from(me)),
                _ => _ = handle.put(2) | handle.remove(u64::from(me)),
            }
        }
    });
    lists.looked.get()
}

#[test]
fn no_thread_reads_a_freed_node() {
    let schemes: [fn() -> bool; 5] = [
        few_keys::<Epochs>,
        few_keys::<Quiescence>,
        few_keys::<Pointers>,
        few_keys::<Eras>,
        few_keys::<Interval>,
    ];
    for looks in schemes {
        explore::check(|| assert!(!looks()));
    }
}

/// A wrong scheme: frees nodes immediately.
struct Careless;

impl Scheme for Careless {
    const NAME: &'static str = "careless";

    fn new(_: usize, _: Pace) -> Self {
        Self
    }

    fn enter(&self, _: usize) {}

    fn leave(&self, _: usize) {}

    fn read(&self, _: usize, _: usize, link: &AtomicPtr<Node>) -> *mut Node {
        link.load(Ordering::Acquire) // Acquire: as all schemes
    }

    fn clock(&self) -> Option<&Clock> {
        None
    }

    fn ripe(&self, retired: &mut Vec<Retired>) -> Vec<Retired> {
        std::mem::take(retired)
    }
}

#[test]
fn the_test_finds_a_thread_that_reads_a_freed_node() {
    let found = Cell::new(false);
    explore::check(|| found.set(found.get() | few_keys::<Careless>()));
    assert!(found.get());
}

/// One thread inserts and removes keys. Returns how many nodes wait to be freed afterwards.
fn waiting<S: Scheme>() -> usize {
    let simulation = manycore_sim::Simulation::new(&manycore_sim::Machine::example());
    let report = simulation.run(|| {
        let lists = Lists::<S>::new(1, 8, OFTEN);
        let mut handle = lists.handle();
        for round in 0..4 {
            assert!((0..100).all(|key| handle.insert(key)), "round {round}");
            assert!((0..100).all(|key| handle.get(key) && !handle.insert(key) && !handle.put(key)));
            assert!((0..100).all(|key| handle.remove(key) && !handle.get(key)));
        }
        assert!(!handle.remove(7));
        drop(handle);
        lists.waiting()
    });
    report.unwrap().result
}

#[test]
fn nodes_that_no_thread_reads_are_freed() {
    // There are 800 nodes. No era begins while no thread allocates, so the nodes of the last
    // hundred operations wait, and one older node.
    let left = [
        waiting::<Epochs>(),
        waiting::<Quiescence>(),
        waiting::<Pointers>(),
        waiting::<Eras>(),
        waiting::<Interval>(),
    ];
    assert!(left.iter().all(|count| *count <= 101), "{left:?}");
    assert_eq!(waiting::<Leak>(), 800);
}

//! Tests that the tables are sets in every order of the threads' steps, with memory reused as early
//! as possible.

use manycore_sim::{explore, thread};
use manycore_traits::{ConcurrentSet, SetHandle};

use super::java::SegmentedTable;
use super::lazy::LazyTable;
use super::nodes::Pools;

/// Keys of a single bucket, or of a single segment.
const KEYS: [u64; 3] = [512, 1024, 1536];

/// Three threads insert, remove and look up keys. Afterwards the table has the keys that follow
/// from the calls' results.
fn few_keys<S: ConcurrentSet<u64>>(make: impl Fn(Pools) -> S) {
    let set = make(Pools::with_batch(3, 1));
    set.handle().insert(KEYS[0]);
    let added = thread::parallel(3, |me| {
        let mut handle = set.handle();
        let mut added = [0; 3];
        for round in 0..3 {
            let number = (me as usize + round) % 3;
            added[number] += i32::from(handle.insert(KEYS[number]));
            handle.contains(&KEYS[round]);
            added[round] -= i32::from(handle.remove(&KEYS[round]));
        }
        added
    });
    let mut handle = set.handle();
    for (number, key) in KEYS.iter().enumerate() {
        let sum: i32 = added.iter().map(|of_thread| of_thread[number]).sum();
        let expected = sum + i32::from(number == 0);
        assert_eq!(i32::from(handle.contains(key)), expected, "key {key}");
    }
}

#[test]
fn tables_are_sets() {
    explore::check(|| few_keys(|pools| LazyTable::with_pools(pools, 1)));
    explore::check(|| few_keys(|pools| SegmentedTable::with_segments(pools, 1)));
}

/// One thread inserts many keys and removes them again.
fn many_keys<S: ConcurrentSet<u64>>(make: impl FnOnce(Pools) -> S) {
    let simulation = manycore_sim::Simulation::new(&manycore_sim::Machine::example());
    let report = simulation.run(|| {
        let set = make(Pools::new(1));
        let mut handle = set.handle();
        for _ in 0..3 {
            assert!((0..3000).all(|key| !handle.contains(&key) && handle.insert(key)));
            assert!((0..3000).all(|key| handle.contains(&key) && !handle.insert(key)));
            assert!((0..3000).all(|key| handle.remove(&key) && !handle.remove(&key)));
        }
    });
    report.unwrap();
}

#[test]
fn tables_grow_and_use_memory_again() {
    many_keys(|pools| LazyTable::with_pools(pools, 512));
    many_keys(|pools| SegmentedTable::with_segments(pools, 1));
}

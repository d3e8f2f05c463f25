//! The directory of a hash table that grows: arrays of buckets are known before buckets are split
//! off in them, and a key is found at its place, however much has grown meanwhile.

use std::sync::Arc;

use loom::thread;
use manycore::clock::Counter;
use manycore::collections::hash::GrowingTable;
use manycore::mvrlu::Domain;
use manycore::{ConcurrentMap, MapHandle};

use crate::sessions::few_segments;
use crate::{check, check_first};

type Table = GrowingTable<u64, u64, Domain<Counter>>;

/// Keys that are in the first bucket of two by their hashes, and in the second.
const STAYS: u64 = 4;
const MOVES: u64 = 5;
const ALSO_MOVES: u64 = 6;

/// With one bucket, off which another is split for each key but the first.
fn table() -> Table {
    Table::with_keys_per_bucket(Domain::new(Counter::default(), few_segments(2048)), 0, 1)
}

fn insert(table: &Table, keys: &[u64]) {
    let mut handle = ConcurrentMap::handle(table);
    keys.iter().for_each(|key| assert_eq!(handle.insert(*key, *key), None, "{key} twice"));
}

fn has(table: &Table, keys: &[u64]) {
    let mut handle = ConcurrentMap::handle(table);
    keys.iter().for_each(|key| assert_eq!(handle.get(key), Some(*key), "{key} is lost"));
}

/// Both want more buckets; nothing is lost.
#[test]
fn two_have_it_grow() {
    check_first(20_000, 2, || {
        let table = Arc::new(table());
        insert(&table, &[STAYS]);
        let shared = table.clone();
        let other = thread::spawn(move || insert(&shared, &[MOVES]));
        insert(&table, &[ALSO_MOVES]);
        other.join().unwrap();
        has(&table, &[STAYS, MOVES, ALSO_MOVES]);
    });
}

/// A key that is there is found while its bucket is divided.
#[test]
fn a_look_beside_a_split() {
    check(3, || {
        let table = Arc::new(table());
        insert(&table, &[MOVES]);
        let shared = table.clone();
        let other = thread::spawn(move || insert(&shared, &[STAYS, ALSO_MOVES]));
        has(&table, &[MOVES]);
        other.join().unwrap();
        has(&table, &[STAYS, MOVES, ALSO_MOVES]);
    });
}

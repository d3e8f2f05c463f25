//! Maps in a space: as the standard library's by one thread.

use std::collections::BTreeMap as Standard;
use std::hash::{BuildHasher, Hasher};
use std::ops::Bound;

use manycore::collections::hash::RandomState;
use manycore::collections::space::{BTreeMap, HashMap, Limit, Map, Space};
use manycore::collections::versioned::btree::BPlus;
use manycore::session::{Conflict, Sessions};
use manycore::{mvrlu, rlu};
use manycore_history::run::unless_interpreted;

/// With nodes of three keys, so that few keys make many levels.
type Small<K, V, M = mvrlu::Domain> = Map<K, V, BPlus<3, 3>, M>;

/// Any keys, in no order: growing, by single calls and in transactions, and looked up by their
/// borrowed forms.
fn a_table_is_as_the_standard_library<M: Sessions + Default + 'static>() {
    const KEYS: u64 = unless_interpreted(5_000, 100);
    let space = Space::<M>::default();
    let table = HashMap::<String, u64, RandomState, M>::new_in(&space);
    let (mut standard, mut random) = (Standard::new(), fastrand::Rng::with_seed(5));
    for value in 0..4 * KEYS {
        let key = random.u64(..KEYS).to_string();
        match random.u8(..8) {
            0..4 => assert_eq!(table.insert(key.clone(), value), standard.insert(key, value)),
            4 => assert_eq!(table.get(key.as_str()), standard.get(&key).copied()),
            5 | 6 => assert_eq!(table.remove(key.as_str()), standard.remove(&key)),
            _ => {
                let others: Vec<_> = (0..5).map(|_| random.u64(..KEYS).to_string()).collect();
                space.transact(|tx| {
                    others
                        .iter()
                        .try_for_each(|key| tx.set(&table, key.clone(), value).map(drop))?;
                    tx.delete(&table, &key)
                });
                standard.extend(others.into_iter().map(|key| (key, value)));
                standard.remove(&key);
            }
        }
    }
    let mut found = Vec::new();
    space.snapshot(|now| {
        now.for_each(&table, |key, value| {
            found.push((key.clone(), *value));
            true
        });
    });
    found.sort_unstable();
    assert!(found.into_iter().eq(standard.iter().map(|(key, value)| (key.clone(), *value))));
    assert!(table.buckets() as u64 > KEYS / 8, "{} buckets", table.buckets());
    table.retain(|_, value| value % 2 == 0);
    standard.retain(|_, value| *value % 2 == 0);
    assert_eq!(table.len(), standard.len());
    table.clear();
    assert!(table.is_empty());
}

/// Hashes all keys alike.
#[derive(Clone, Default)]
struct Same;

impl BuildHasher for Same {
    type Hasher = Same;

    fn build_hasher(&self) -> Same {
        Same
    }
}

impl Hasher for Same {
    fn write(&mut self, _bytes: &[u8]) {}

    fn finish(&self) -> u64 {
        3
    }
}

/// The map uses its own hasher, also where a bucket is split: with a hasher for which all keys
/// collide there is one chain, and each key is found in it.
#[test]
fn a_hasher_of_the_users() {
    const KEYS: u32 = unless_interpreted(300, 40);
    let table = HashMap::<String, u32, Same>::with_hasher_in(Same, &Space::default());
    (0..KEYS).for_each(|n| assert_eq!(table.insert(n.to_string(), n), None));
    assert_eq!(table.len(), KEYS as usize);
    (0..KEYS).for_each(|n| assert_eq!(table.get(n.to_string().as_str()), Some(n)));
    (0..KEYS).for_each(|n| assert_eq!(table.remove(n.to_string().as_str()), Some(n)));
    assert!(table.is_empty());
}

#[test]
fn entries_are_there_or_made() {
    let space = <Space>::default();
    let table = HashMap::<String, u32>::new_in(&space);
    let key = || "key".to_owned();
    assert_eq!(table.entry(key()).or_insert(5), 5);
    assert_eq!(table.entry(key()).or_insert_with(|| unreachable!("it has a value")), 5);
    table.entry(key()).and_modify(|value| value * 2).or_insert(1);
    assert_eq!(table.get("key"), Some(10));
    let mut me = space.handle();
    assert_eq!(table.by(&mut me).entry("other".to_owned()).or_default(), 0);
    table.by(&mut me).entry("third".to_owned()).and_modify(|value| value + 1).or_insert_with(|| 7);
    assert_eq!(table.by(&mut me).get("third"), Some(7));
}

#[test]
fn tables_are_as_the_standard_library() {
    a_table_is_as_the_standard_library::<mvrlu::Domain>();
    a_table_is_as_the_standard_library::<rlu::Domain>();
}

/// Random operations by one thread, as on the standard library's map.
fn is_as_the_standard_library<M: Sessions + 'static>(space: &Space<M>, keys: u64, growing: bool) {
    let map = Small::<u64, u64, M>::new_in(space);
    let (mut standard, mut random) = (Standard::new(), fastrand::Rng::with_seed(keys));
    let mut me = space.handle();
    for value in 0..unless_interpreted(10_000, 200) {
        let key = random.u64(..keys);
        match random.u8(if growing { 0..8 } else { 2..12 }) {
            0..5 => assert_eq!(map.by(&mut me).insert(key, value), standard.insert(key, value)),
            5 => assert_eq!(map.by(&mut me).get(&key), standard.get(&key).copied()),
            6 => {
                let (from, to) = (key, key + random.u64(..50));
                let from = if random.bool() { Bound::Included(from) } else { Bound::Unbounded };
                let to = if random.bool() { Bound::Excluded(to) } else { Bound::Included(to) };
                if from == Bound::Included(key) && to == Bound::Excluded(key) {
                    continue;
                }
                let expected = || standard.range((from, to));
                me.snapshot(|now| {
                    assert!(now.range(&map, (from, to)).eq(expected()));
                    assert!(now.range(&map, (from, to)).rev().eq(expected().rev()));
                    // From both ends, in turns as they come.
                    let (mut ours, mut theirs) = (now.range(&map, (from, to)), expected());
                    loop {
                        let (one, other) = match random.bool() {
                            true => (ours.next(), theirs.next()),
                            false => (ours.next_back(), theirs.next_back()),
                        };
                        assert_eq!(one, other);
                        if one.is_none() {
                            break;
                        }
                    }
                    assert_eq!(now.first(&map), standard.first_key_value());
                    assert_eq!(now.last(&map), standard.last_key_value());
                });
            }
            _ => assert_eq!(map.by(&mut me).remove(&key), standard.remove(&key)),
        }
        if value % unless_interpreted(100, 20) == 0 {
            map.check();
            // Several operations in one transaction, which sees what it has done.
            let keys: Vec<_> = (0..5).map(|_| random.u64(..keys)).collect();
            let found = me.transact(|tx| {
                tx.remove(&map, &keys[0])?;
                tx.insert(&map, keys[1], value)?;
                tx.update(&map, &keys[2], |old| old + 1)?;
                tx.insert_new(&map, keys[3], value)?;
                tx.delete(&map, &keys[4])?;
                Ok(tx.range(&map, ..keys[0]).map(|(k, v)| (*k, *v)).collect::<Vec<_>>())
            });
            standard.remove(&keys[0]);
            standard.insert(keys[1], value);
            standard.entry(keys[2]).and_modify(|old| *old += 1);
            standard.entry(keys[3]).or_insert(value);
            standard.remove(&keys[4]);
            assert!(found.into_iter().eq(standard.range(..keys[0]).map(|(k, v)| (*k, *v))));
        }
    }
    map.check();
    map.retain(|key, _| key % 3 == 0);
    standard.retain(|key, _| key % 3 == 0);
    me.snapshot(|now| assert!(now.iter(&map).eq(&standard)));
    assert_eq!(map.len(), standard.len());
    let leaves = map.check();
    map.clear();
    assert!(map.is_empty());
    assert!(map.check() <= 2 + leaves / 8, "{} empty leaves of {leaves}", map.check());
}

#[test]
fn as_the_standard_library() {
    for keys in [4, 30, 1000] {
        for growing in [true, false] {
            is_as_the_standard_library(&<Space>::default(), keys, growing);
            is_as_the_standard_library(&Space::<rlu::Domain>::default(), keys, growing);
        }
    }
}

#[test]
#[should_panic(expected = "a map of another space")]
fn another_spaces_map_is_refused() {
    let (space, other) = (<Space>::default(), <Space>::default());
    let map = BTreeMap::<u64, u64>::new_in(&space);
    other.snapshot(|now| now.get(&map, &1).copied());
}

#[test]
#[should_panic(expected = "a map of another space")]
fn another_spaces_handle_is_refused() {
    let (space, other) = (<Space>::default(), <Space>::default());
    let map = BTreeMap::<u64, u64>::new_in(&space);
    map.by(&mut other.handle()).insert(1, 1);
}

#[test]
fn attempts_are_limited() {
    let map = BTreeMap::<u64, u64>::new();
    let mut runs = 0;
    let gave_up = map.space().transact_with(Limit::attempts(3), |tx| {
        runs += 1;
        tx.insert(&map, 1, runs)?;
        Err::<(), _>(Conflict::Retry)
    });
    assert_eq!((runs, gave_up.unwrap_err().attempts), (3, 3));
    assert!(map.is_empty());
}

/// Keys that are inserted at one end and removed at the other leave no empty nodes behind.
#[test]
fn a_queue_of_keys_stays_small() {
    let map = Small::<u64, u64>::new();
    for n in 0..unless_interpreted(20_000, 200) {
        map.set(n, n);
        if n >= 20 {
            assert_eq!(map.remove(&(n - 20)), Some(n - 20));
        }
    }
    assert!(map.check() < 30, "{} leaves of 20 keys", map.check());
}

#[test]
fn collected() {
    let squares: BTreeMap<u64, u64> = (0..1000).rev().map(|n| (n, n * n)).collect();
    (&squares).extend((1000..1100).map(|n| (n, 0)));
    assert_eq!(squares.len(), 1100);
    let mut found = Vec::new();
    squares.range(30..33, |key, value| {
        found.push((*key, *value));
        found.len() < 2
    });
    assert_eq!(found, [(30, 900), (31, 961)]);
}

/// A map that is built from sorted keys is complete, and behaves like any other map.
#[test]
fn from_sorted() {
    let space = <Space>::default();
    for entries in (0..40).chain([100, 1000]) {
        let map = Small::from_sorted(
            &space,
            (0..entries).map(|n| (n.to_string().len() as u64 * 10_000 + n, n)),
        );
        let leaves = map.check() as u64;
        assert_eq!(leaves, entries.div_ceil(3).max(1), "leaves are full");
        assert_eq!(map.len() as u64, entries);
        map.set(5, 5);
        assert_eq!(map.delete(&10_000), entries > 0);
        map.check();
    }
}

#[test]
#[should_panic(expected = "not larger than the one before")]
fn from_unsorted() {
    Small::from_sorted(&<Space>::default(), [("b".to_owned(), 1), ("a".to_owned(), 2)]);
}

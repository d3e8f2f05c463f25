//! Ordered maps, sets and queues.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;
use timestone::device::Simulated;
use timestone::{Durability, Isolation, OrderedMap, Persist, Queue, ReadOnly, Set, Store};

use crate::store::{open, options};

/// Does the same to an ordered map and to the standard library's, over several openings.
fn compare<K: Persist + Ord + std::fmt::Debug, V: Persist + PartialEq + std::fmt::Debug>(
    seed: u64,
    keys: u64,
    key: impl Fn(u64) -> K,
    value: impl Fn(u64) -> V,
) {
    let disk = Simulated::new();
    let mut model = BTreeMap::new();
    let mut rng = Rng::with_seed(seed);
    for round in 0..6 {
        let store = open(&disk);
        let map: OrderedMap<K, V> = store.ordered_map("ordered").unwrap();
        let mut me = store.register().unwrap();
        for _ in 0..600 {
            let (at, new) = (key(rng.u64(0..keys)), value(rng.u64(..)));
            // Some rounds fill it, and some empty it.
            if rng.u64(0..10) < 3 + 2 * (round % 3) {
                let run = me.run_with(Durability::EVENTUAL, |tx| map.insert(tx, at, new));
                assert_eq!(run.unwrap(), model.insert(at, new));
            } else {
                let run = me.run_with(Durability::EVENTUAL, |tx| map.remove(tx, &at));
                assert_eq!(run.unwrap(), model.remove(&at));
            }
            assert_eq!(me.read(|now| map.get(now, &at)), model.get(&at).copied());
            if rng.u8(0..20) == 0 {
                let bound = |rng: &mut Rng| match rng.u8(0..5) {
                    0 => Bound::Unbounded,
                    1 | 2 => Bound::Included(key(rng.u64(0..keys))),
                    _ => Bound::Excluded(key(rng.u64(0..keys))),
                };
                let range = (bound(&mut rng), bound(&mut rng));
                let wanted =
                    model.iter().filter(|(key, _)| std::ops::RangeBounds::contains(&range, *key));
                let wanted: Vec<_> = wanted.map(|(key, value)| (*key, *value)).collect();
                let found: Vec<_> = me.read(|now| map.range(now, range).collect());
                assert_eq!(found, wanted, "{range:?}");
            }
        }
        drop(me);
        store.sync().unwrap();
        let mut me = store.register().unwrap();
        let all: Vec<_> = me.read(|now| map.range(now, ..).collect());
        assert!(all.iter().copied().eq(model.iter().map(|(key, value)| (*key, *value))));
        assert_eq!(me.read(|now| (map.len(now), map.is_empty(now))), (all.len(), all.is_empty()));
    }
    let store = ReadOnly::open_on(Arc::new(disk), options()).unwrap();
    let map: OrderedMap<K, V> = store.ordered_map("ordered").unwrap();
    assert_eq!(map.len(&store), model.len());
}

#[test]
fn an_ordered_map_is_what_the_one_of_the_standard_library_is() {
    compare(1, 30, |key| key, |value| value);
    compare(2, 1000, |key| key, |value| value);
    compare(3, 500, |key| [key as u8, (key >> 8) as u8, 7], |_| ());
}

#[test]
fn ordered_maps_have_large_keys_and_values() {
    compare(4, 60, |key| [key; 9], |value| [value; 100]);
    compare(5, 12, |key| key as u32, |value| [value; 300]);
}

#[test]
fn an_ordered_map_that_was_emptied_is_small_again() {
    let store = open(&Simulated::new());
    let map: OrderedMap<u64, u64> = store.ordered_map("ordered").unwrap();
    let mut me = store.register().unwrap();
    let mut run = |first: u64| {
        for key in first..first + 2000 {
            me.run_with(Durability::EVENTUAL, |tx| map.insert(tx, key, key)).unwrap();
        }
        for key in first..first + 2000 {
            let removed = me.run_with(Durability::EVENTUAL, |tx| map.remove(tx, &key)).unwrap();
            assert_eq!(removed, Some(key));
        }
    };
    // Keys that only grow, like a queue's: empty nodes are removed.
    (0..5).for_each(|round| run(2000 * round));
    let copy = Simulated::new();
    store.backup_on(&copy).unwrap();
    let image = copy.tamper("image.0", |bytes| bytes.len()).unwrap();
    assert!(image < 64 << 10, "{image} bytes for no key");
}

#[test]
fn threads_that_insert_and_remove_keys_leave_each_ones_there() {
    let disk = Simulated::new();
    let store = open(&disk);
    let map: OrderedMap<u64, u64> = store.ordered_map("ordered").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let mut me = store.register().unwrap();
                let terms = (Durability::EVENTUAL, Isolation::Serializable);
                for round in 0..600 {
                    let key = round * 4 + thread;
                    me.run_with(terms, |tx| map.insert(tx, key, thread)).unwrap();
                    if round % 3 == 0 {
                        me.run_with(terms, |tx| map.remove(tx, &key)).unwrap();
                    }
                }
            });
        }
    });
    store.close().unwrap();
    let store = open(&disk);
    let map: OrderedMap<u64, u64> = store.ordered_map("ordered").unwrap();
    let found: Vec<_> = store.register().unwrap().read(|now| map.range(now, ..).collect());
    let is_kept = |key: &u64| !(key / 4).is_multiple_of(3);
    let wanted: Vec<_> = (0..2400).filter(is_kept).map(|key| (key, key % 4)).collect();
    assert_eq!(found, wanted);
}

#[test]
fn what_a_range_has_not_seen_does_not_come_before_the_commit() {
    for (isolation, wanted) in [(Isolation::Snapshot, 5), (Isolation::Serializable, 6)] {
        let store = open(&Simulated::new());
        let map: OrderedMap<u64, u64> = store.ordered_map("ordered").unwrap();
        let (mut one, mut other) = (store.register().unwrap(), store.register().unwrap());
        one.run(|tx| (0..100).try_for_each(|key| map.insert(tx, key * 10, 0).map(drop))).unwrap();
        let mut has_other_gone = false;
        one.run_with(isolation, |tx| {
            let keys = map.range(tx, 20..=60).count() as u64;
            if !has_other_gone {
                has_other_gone = true;
                other.run(|tx| map.insert(tx, 55, 0)).unwrap();
            }
            // In another leaf.
            map.insert(tx, 5000, keys)
        })
        .unwrap();
        assert_eq!(one.read(|now| map.get(now, &5000)), Some(wanted), "{isolation:?}");
    }
}

#[test]
fn a_set_is_what_the_one_of_the_standard_library_is() {
    let store = open(&Simulated::new());
    let set: Set<u32> = store.set("set").unwrap();
    let mut me = store.register().unwrap();
    let (mut model, mut rng) = (BTreeSet::new(), Rng::with_seed(1));
    for _ in 0..3000 {
        let key = rng.u32(0..200);
        let (found, wanted) = match rng.u8(0..3) {
            0 => (me.run_with(Durability::EVENTUAL, |tx| set.insert(tx, key)), model.insert(key)),
            1 => (me.run_with(Durability::EVENTUAL, |tx| set.remove(tx, &key)), model.remove(&key)),
            _ => (Ok(me.read(|now| set.contains(now, &key))), model.contains(&key)),
        };
        assert_eq!(found.unwrap(), wanted);
    }
    let mut all = BTreeSet::new();
    me.read(|now| set.for_each(now, |key| _ = all.insert(key)));
    assert_eq!(all, model);
    assert_eq!(me.read(|now| (set.len(now), set.is_empty(now))), (model.len(), model.is_empty()));
}

#[test]
fn a_queue_is_what_the_one_of_the_standard_library_is() {
    let disk = Simulated::new();
    let (mut model, mut rng) = (VecDeque::new(), Rng::with_seed(1));
    for _ in 0..4 {
        let store = open(&disk);
        let queue: Queue<[u16; 5]> = store.queue("queue").unwrap();
        let mut me = store.register().unwrap();
        for _ in 0..1000 {
            let value = [rng.u16(..); 5];
            if rng.bool() {
                me.run_with(Durability::EVENTUAL, |tx| queue.push(tx, value)).unwrap();
                model.push_back(value);
            } else {
                let popped = me.run_with(Durability::EVENTUAL, |tx| queue.pop(tx)).unwrap();
                assert_eq!(popped, model.pop_front());
            }
            assert_eq!(me.read(|now| queue.first(now)), model.front().copied());
        }
        assert!(me.read(|now| queue.iter(now).eq(model.iter().copied())));
        assert_eq!(
            me.read(|now| (queue.len(now), queue.is_empty(now))),
            (model.len(), model.is_empty())
        );
    }
    let store = ReadOnly::open_on(Arc::new(disk), options()).unwrap();
    let queue: Queue<[u16; 5]> = store.queue("queue").unwrap();
    assert!(queue.iter(&store).eq(model.iter().copied()));
}

#[test]
fn each_value_of_a_queue_is_popped_once_and_in_order() {
    let store: Store = open(&Simulated::new());
    let queue: Queue<u64> = store.queue("queue").unwrap();
    let popped = AtomicU64::new(0);
    let each = 800;
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let store = &store;
            scope.spawn(move || {
                let mut me = store.register().unwrap();
                for count in 0..each {
                    let value = thread << 32 | count;
                    me.run_with(Durability::EVENTUAL, |tx| queue.push(tx, value)).unwrap();
                }
            });
        }
        for _ in 0..2 {
            let (store, popped) = (&store, &popped);
            scope.spawn(move || {
                let mut me = store.register().unwrap();
                let mut last = [None; 2];
                while popped.load(Ordering::Relaxed) < 2 * each {
                    let Some(value) =
                        me.run_with(Durability::EVENTUAL, |tx| queue.pop(tx)).unwrap()
                    else {
                        std::thread::yield_now();
                        continue;
                    };
                    let (thread, count) = ((value >> 32) as usize, value as u32);
                    assert!(last[thread] < Some(count), "{count} after {last:?}");
                    last[thread] = Some(count);
                    popped.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    store.sync().unwrap();
    assert!(store.register().unwrap().read(|now| queue.is_empty(now)));
}

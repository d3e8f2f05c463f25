//! The hash map that grows: any keys and values, as `std`'s; each dropped once; and many threads
//! while it grows.

use std::collections::HashMap as Standard;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;

use manycore::collections::HashMap;
use manycore_history::run::unless_interpreted;
use proptest::prelude::*;

/// Puts all keys into few buckets, with few different tags.
#[derive(Clone, Default)]
pub struct Bad(BuildHasherDefault<BadHasher>);

#[derive(Default)]
pub struct BadHasher(u64);

impl Hasher for BadHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.0 = self.0.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        (self.0 % 4) | ((self.0 % 3) << 56)
    }
}

impl BuildHasher for Bad {
    type Hasher = BadHasher;

    fn build_hasher(&self) -> BadHasher {
        self.0.build_hasher()
    }
}

/// Does the same with `std`'s, and compares each result.
fn same<S: BuildHasher + Default>(operations: &[(u8, u16, u32)]) {
    let (map, mut standard) = (HashMap::<String, u32, S>::default(), Standard::new());
    for (what, key, value) in operations {
        let (key, value) = (format!("key {key}"), *value);
        let pinned = map.pin();
        match what % 8 {
            0 | 1 => {
                assert_eq!(pinned.insert(key.clone(), value).copied(), standard.insert(key, value))
            }
            2 => assert_eq!(pinned.remove(key.as_str()).copied(), standard.remove(&key)),
            3 => assert_eq!(
                *pinned.get_or_insert_with(key.clone(), || value),
                *standard.entry(key).or_insert(value)
            ),
            4 => {
                let old = standard.get_mut(&key).map(|old| {
                    *old = old.wrapping_add(value);
                    *old
                });
                assert_eq!(pinned.update(&key, |old| old.wrapping_add(value)).copied(), old);
            }
            5 => {
                let is = standard.get(&key).is_some_and(|old| old % 2 == 0);
                assert_eq!(pinned.remove_if(&key, |old| old % 2 == 0).is_some(), is);
                if is {
                    standard.remove(&key);
                }
            }
            6 => match standard.get_mut(&key) {
                Some(old) => {
                    assert!(pinned.compare_exchange(&key, &old.wrapping_add(1), 7).is_err());
                    assert_eq!(pinned.compare_exchange(&key, old, value), Ok(&*old));
                    *old = value;
                }
                None => assert_eq!(pinned.compare_exchange(&key, &value, 1), Err((None, 1))),
            },
            _ if key.ends_with('7') => {
                pinned.retain(|_, old| old % 3 != 0);
                standard.retain(|_, old| *old % 3 != 0);
            }
            _ => assert_eq!(pinned.get(&key), standard.get(&key)),
        }
        assert_eq!(map.is_empty(), standard.is_empty());
    }
    let all: Standard<_, _> = map.pin().iter().map(|(key, value)| (key.clone(), *value)).collect();
    assert_eq!(all, standard);
    assert_eq!(map.len(), standard.len());
    map.clear();
    assert!(map.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(unless_interpreted(100, 2)) })]

    #[test]
    fn as_the_standard_librarys(operations in prop::collection::vec((any::<u8>(), 0_u16..200, any::<u32>()), 0..600)) {
        same::<manycore::collections::hash::RandomState>(&operations);
    }

    #[test]
    fn as_the_standard_librarys_whatever_the_hashes(
        operations in prop::collection::vec((any::<u8>(), 0_u16..60, any::<u32>()), 0..400)
    ) {
        same::<Bad>(&operations);
    }
}

/// Counts how many of it there are.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(all: &Arc<AtomicUsize>) -> Self {
        all.fetch_add(1, Relaxed);
        Self(all.clone())
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[test]
fn each_value_is_dropped_once() {
    let all = Arc::new(AtomicUsize::new(0));
    let map = HashMap::<u32, Counted>::new();
    const KEYS: u32 = unless_interpreted(2000, 40) as u32;
    for round in 0..3 {
        for key in 0..KEYS {
            map.insert(key, Counted::new(&all));
        }
        for key in (0..KEYS).step_by(3 + round) {
            map.remove(&key);
            map.get_or_insert_with(key, || Counted::new(&all));
            map.update(&key, Counted::clone);
        }
    }
    assert_eq!(map.len(), KEYS as usize);
    let pinned = map.pin();
    let kept = pinned.get(&1).expect("it is there");
    map.remove(&1);
    assert!(Arc::ptr_eq(&kept.0, &all), "it stays as long as the section");
    drop(pinned);
    drop(map);
    assert_eq!(all.load(Relaxed), 0);
}

/// A value with interior mutability remains one value, also while the map grows.
#[test]
fn values_stay_where_they_are() {
    const THREADS: u64 = 4;
    const KEYS: u64 = unless_interpreted(2000, 20) as u64;
    let map = HashMap::<u64, AtomicU64>::new();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let handle = map.handle();
                for key in 0..KEYS {
                    handle.pin().get_or_insert_with(key, AtomicU64::default).fetch_add(1, Relaxed);
                }
            });
        }
    });
    assert_eq!(map.len() as u64, KEYS);
    assert!(map.pin().iter().all(|(_, count)| count.load(Relaxed) == THREADS));
}

/// Readers find each permanent key, in look-ups and in walks, while others make the map grow and
/// shrink.
#[test]
fn nothing_is_missed_while_it_grows() {
    const KEYS: u64 = unless_interpreted(1000, 16) as u64;
    const MORE: u64 = unless_interpreted(40_000, 60) as u64;
    for _ in 0..unless_interpreted(5, 1) {
        let map = HashMap::<u64, u64>::new();
        (0..KEYS).for_each(|key| assert_eq!(map.insert(key, key), None));
        let (ready, done) = (Barrier::new(4), AtomicBool::new(false));
        thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    let (map, ready) = (&map, &ready);
                    scope.spawn(move || {
                        let handle = map.handle();
                        ready.wait();
                        for number in 0..MORE {
                            let key = KEYS + 2 * number + writer;
                            handle.pin().insert(key, key);
                            handle.pin().insert(number % KEYS, number % KEYS);
                            if number % 3 != 0 {
                                handle.pin().remove(&key);
                            }
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                let handle = map.handle();
                ready.wait();
                let mut key = 0;
                while !done.load(Relaxed) {
                    assert_eq!(handle.pin().get(&key), Some(&key));
                    key = (key + 1) % KEYS;
                }
            });
            scope.spawn(|| {
                ready.wait();
                while !done.load(Relaxed) {
                    let pinned = map.pin();
                    let mut seen: Vec<_> =
                        pinned.iter().map(|(key, _)| *key).filter(|key| *key < KEYS).collect();
                    seen.sort_unstable();
                    assert!(seen.iter().copied().eq(0..KEYS), "{} of {KEYS}", seen.len());
                }
            });
            for writer in writers {
                writer.join().expect("a writer");
            }
            done.store(true, Relaxed);
        });
        assert_eq!(map.len() as u64, KEYS + 2 * MORE.div_ceil(3));
    }
}

/// No increment is lost, even if all keys are in one bucket.
#[test]
fn updates_are_one_step() {
    const THREADS: u64 = 4;
    const TIMES: u64 = unless_interpreted(5000, 20) as u64;
    let map = HashMap::<u64, u64, Bad>::default();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for number in 0..TIMES {
                    map.pin()
                        .update_or_insert(number % 16, |old| old.copied().unwrap_or_default() + 1);
                }
            });
        }
    });
    assert_eq!(map.pin().iter().map(|(_, count)| *count).sum::<u64>(), THREADS * TIMES);
}

thread_local! {
    static PANICS: std::cell::Cell<u32> = const { std::cell::Cell::new(u32::MAX) };
}

/// Its hash panics when none of `PANICS` are left.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Panicking(u32);

impl Hash for Panicking {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let left = PANICS.get();
        assert!(left > 0, "the hash panics");
        PANICS.set(left - 1);
        self.0.hash(hasher);
    }
}

/// Whichever hash panics, also during a move of buckets: the map continues to work, and nothing is
/// lost or dropped twice.
#[test]
fn hashes_may_panic_while_it_grows() {
    const KEYS: u32 = unless_interpreted(400, 12) as u32;
    let all = Arc::new(AtomicUsize::new(0));
    for after in (0..unless_interpreted(60, 6) as u32).map(|number| number * 7) {
        let map = HashMap::<Panicking, Counted>::new();
        let mut there = 0;
        for key in 0..KEYS {
            PANICS.set(if key % 20 == 19 { after % 9 } else { u32::MAX });
            let value = Counted::new(&all);
            let put = catch_unwind(AssertUnwindSafe(|| map.insert(Panicking(key), value)));
            PANICS.set(u32::MAX);
            there += usize::from(put.is_ok());
        }
        let found = (0..KEYS).filter(|key| map.contains_key(&Panicking(*key))).count();
        assert!(found >= there && found == map.len(), "{found} of {there}, {} counted", map.len());
        drop(map);
        assert_eq!(all.load(Relaxed), 0);
    }
}

#[test]
fn a_map_from_entries_and_with_references() {
    let map: HashMap<String, Vec<u8>> = (0..100).map(|n| (n.to_string(), vec![n; 3])).collect();
    assert_eq!(map.len(), 100);
    assert_eq!(map.get_with("17", Vec::len), Some(3));
    let mut map = map;
    map.extend([("a".to_owned(), vec![]), ("17".to_owned(), vec![1])]);
    assert_eq!((map.len(), map.get("17")), (101, Some(vec![1])));
    assert!(!map.insert_new("a".into(), vec![2]) && map.remove_if("a", Vec::is_empty));
    assert_eq!(map.pin().get_key_value("a"), None);
    assert!(format!("{:?}", map.pin()).contains("\"17\": [1]"));
}

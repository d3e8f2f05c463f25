//! The hash map for plain data: the results of `std`'s map, for all hash functions; no torn entry;
//! many threads while it grows.

use std::collections::{HashMap as Standard, HashSet};
use std::hash::{BuildHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use manycore::collections::PlainHashMap;
use manycore::collections::hash::RandomState;
use manycore::collections::hash::plain::NoUninit;
use manycore_history::run::unless_interpreted;
use proptest::prelude::*;

use crate::hash_map::Bad;

/// Does the same with `std`'s, and compares each result.
fn same<S: BuildHasher + Default>(operations: &[(u8, u16, u32)]) {
    let (wide, mut standard) = (PlainHashMap::<u16, [u32; 3], S>::default(), Standard::new());
    let (set, mut keys) = (PlainHashMap::<[u16; 5], (), S>::default(), HashSet::new());
    for (what, key, value) in operations {
        let (key, value) = (*key, [*value, value / 2, u32::from(*what)]);
        let changed = |old: [u32; 3]| old.map(|part| part.wrapping_add(value[0]));
        match what % 8 {
            0 | 1 => assert_eq!(wide.insert(key, value), standard.insert(key, value)),
            2 => assert_eq!(wide.remove(&key), standard.remove(&key)),
            3 => assert_eq!(
                wide.get_or_insert_with(key, || value),
                *standard.entry(key).or_insert(value)
            ),
            4 => {
                let new = standard.get_mut(&key).map(|old| {
                    *old = changed(*old);
                    *old
                });
                assert_eq!(wide.update(&key, changed), new);
            }
            5 => {
                let is = standard.get(&key).is_some_and(|old| old[0] % 2 == 0);
                assert_eq!(wide.remove_if(&key, |old| old[0] % 2 == 0).is_some(), is);
                if is {
                    standard.remove(&key);
                }
            }
            6 => match standard.get_mut(&key) {
                Some(old) => {
                    assert_eq!(wide.compare_exchange(&key, [7; 3], value), Err(Some(*old)));
                    assert_eq!(wide.compare_exchange(&key, *old, value), Ok(*old));
                    *old = value;
                }
                None => assert_eq!(wide.compare_exchange(&key, value, value), Err(None)),
            },
            _ if key % 10 == 7 => {
                wide.retain(|_, old| old[0] % 3 != 0);
                standard.retain(|_, old| old[0] % 3 != 0);
            }
            _ => assert_eq!(wide.get(&key), standard.get(&key).copied()),
        }
        let key = [key; 5];
        if what % 3 == 0 {
            assert_eq!(set.remove(&key).is_some(), keys.remove(&key));
        } else {
            assert_eq!(set.insert_new(key, ()).is_none(), keys.insert(key));
        }
        assert_eq!(set.contains_key(&key), keys.contains(&key));
        assert_eq!(wide.is_empty(), standard.is_empty());
    }
    assert_eq!(wide.handle().iter().collect::<Standard<_, _>>(), standard);
    assert_eq!(wide.len(), standard.len());
    wide.clear();
    assert!(wide.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(unless_interpreted(100, 2)) })]

    #[test]
    fn as_the_standard_librarys(operations in prop::collection::vec((any::<u8>(), 0_u16..200, any::<u32>()), 0..600)) {
        same::<RandomState>(&operations);
    }

    #[test]
    fn as_the_standard_librarys_whatever_the_hashes(
        operations in prop::collection::vec((any::<u8>(), 0_u16..60, any::<u32>()), 0..400)
    ) {
        same::<Bad>(&operations);
    }
}

/// Readers find each permanent key, and each entry as it was inserted, while others replace values,
/// reuse slots, and make the map grow.
#[test]
fn no_entry_is_torn_or_missed() {
    const KEYS: u64 = unless_interpreted(1000, 16) as u64;
    const MORE: u64 = unless_interpreted(40_000, 60) as u64;
    let key_of = |number: u64| [number, !number];
    let value_of = |number: u64, round: u64| [number, round, number ^ round];
    let is_whole = |key: [u64; 2], value: [u64; 3]| {
        assert_eq!((key[1], value[0], value[2]), (!key[0], key[0], key[0] ^ value[1]));
    };
    for _ in 0..unless_interpreted(5, 1) {
        let map = PlainHashMap::<[u64; 2], [u64; 3]>::new();
        for number in 0..KEYS {
            assert_eq!(map.insert(key_of(number), value_of(number, 0)), None);
        }
        let (ready, done) = (Barrier::new(4), AtomicBool::new(false));
        thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    let (map, ready) = (&map, &ready);
                    scope.spawn(move || {
                        let handle = map.handle();
                        ready.wait();
                        for round in 0..MORE {
                            let number = KEYS + 2 * round + writer;
                            handle.insert(key_of(number), value_of(number, round));
                            handle.insert(key_of(round % KEYS), value_of(round % KEYS, round));
                            if round % 3 != 0 {
                                let taken = handle.remove(&key_of(number));
                                is_whole(key_of(number), taken.expect("only this thread takes it"));
                            }
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                let handle = map.handle();
                ready.wait();
                let mut number = 0;
                while !done.load(Relaxed) {
                    is_whole(key_of(number), handle.get(&key_of(number)).expect("it is there"));
                    number = (number + 1) % KEYS;
                }
            });
            scope.spawn(|| {
                let handle = map.handle();
                ready.wait();
                while !done.load(Relaxed) {
                    let mut seen = Vec::new();
                    for (key, value) in &handle {
                        is_whole(key, value);
                        seen.push(key[0]);
                    }
                    seen.retain(|number| *number < KEYS);
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
    let map = PlainHashMap::<u64, u64, Bad>::default();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let handle = map.handle();
                for number in 0..TIMES {
                    handle.update_or_insert(number % 16, |old| old.unwrap_or_default() + 1);
                }
            });
        }
    });
    assert_eq!(map.handle().iter().map(|(_, count)| count).sum::<u64>(), THREADS * TIMES);
}

/// Panics in a hash computation, once that is switched on.
#[derive(Clone, Default)]
struct Panicking(RandomState);

thread_local! {
    static LEFT: std::cell::Cell<u32> = const { std::cell::Cell::new(u32::MAX) };
}

impl BuildHasher for Panicking {
    type Hasher = <RandomState as BuildHasher>::Hasher;

    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }

    fn hash_one<T: Hash>(&self, value: T) -> u64 {
        let left = LEFT.get();
        assert!(left > 0, "the hash panics");
        LEFT.set(left - 1);
        self.0.hash_one(value)
    }
}

/// Whichever hash panics, also during a move of buckets: the map continues to work, and nothing is
/// lost.
#[test]
fn hashes_may_panic_while_it_grows() {
    const KEYS: u32 = unless_interpreted(400, 12) as u32;
    for after in (0..unless_interpreted(60, 6) as u32).map(|number| number * 7) {
        let map = PlainHashMap::<u32, u32, Panicking>::default();
        let mut there = 0;
        for key in 0..KEYS {
            LEFT.set(if key % 20 == 19 { after % 9 } else { u32::MAX });
            let put = catch_unwind(AssertUnwindSafe(|| map.insert(key, key)));
            LEFT.set(u32::MAX);
            there += usize::from(put.is_ok());
        }
        let found = (0..KEYS).filter(|key| map.get(key) == Some(*key)).count();
        assert!(found >= there && found == map.len(), "{found} of {there}, {} counted", map.len());
    }
}

#[test]
fn a_map_from_entries() {
    let mut map: PlainHashMap<u32, char> = (0..100).map(|n| (n, 'a')).collect();
    map.extend([(17, 'b'), (100, 'c')]);
    assert_eq!((map.len(), map.get(&17), map.get(&100)), (101, Some('b'), Some('c')));
    assert_eq!((map.insert_new(17, 'd'), map.insert_new(101, 'd')), (Some('b'), None));
    map.retain(|key, _| *key == 17);
    assert_eq!(format!("{:?}", map.handle()), "{17: 'b'}");
}

/// Equal if the numbers are; but to compare 13 panics.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct Unlucky(u32);

// SAFETY: a number in a transparent structure.
unsafe impl NoUninit for Unlucky {}

impl PartialEq for Unlucky {
    fn eq(&self, other: &Self) -> bool {
        assert!(self.0 != 13 && other.0 != 13, "to compare 13 panics");
        self.0 == other.0
    }
}

impl Eq for Unlucky {}

impl Hash for Unlucky {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u32(0);
    }
}

/// A comparison that panics while the bucket is locked leaves it unchanged and unlocked.
#[test]
fn comparisons_may_panic() {
    let map = PlainHashMap::<Unlucky, u32>::new();
    map.insert(Unlucky(13), 1);
    for _ in 0..3 {
        let put = catch_unwind(AssertUnwindSafe(|| map.insert(Unlucky(7), 2)));
        assert!(put.is_err() && map.len() == 1);
    }
    map.retain(|key, _| {
        assert_eq!(key.0, 13);
        true
    });
    assert_eq!(
        map.handle().iter().map(|(key, value)| (key.0, value)).collect::<Vec<_>>(),
        [(13, 1)]
    );
}

//! The adaptive radix tree: as the standard library's map, by one thread.

use std::collections::BTreeMap as Standard;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

use manycore::collections::space::{ArtKey, ArtMap, Limit, Space};
use manycore::session::Sessions;
use manycore::{mvrlu, rlu};
use manycore_history::run::unless_interpreted;
use proptest::prelude::*;

use crate::space_values::quietly;

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<u8>, u64),
    Delete(Vec<u8>),
    Look(Vec<u8>),
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>, Vec<bool>),
    Prefix(Vec<u8>, Vec<bool>),
}

/// Keys with a common beginning, keys that are prefixes of others, the empty key, long keys that
/// differ in the middle, and keys that differ at every byte.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        9 => prop::collection::vec(0_u8..3, 0..5),
        4 => prop::collection::vec(any::<u8>(), 1..3),
        2 => prop::collection::vec(0_u8..2, 300..302),
        3 => (0_usize..40, any::<u8>(), 0_usize..30).prop_map(|(same, byte, more)| {
            [vec![7; same], vec![byte], vec![9; more]].concat()
        }),
    ]
}

fn bounds() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        keys().prop_map(Bound::Included),
        keys().prop_map(Bound::Excluded)
    ]
}

/// From which end the next entries are asked for.
fn ends() -> impl Strategy<Value = Vec<bool>> {
    prop_oneof![Just(vec![true]), Just(vec![false]), prop::collection::vec(any::<bool>(), 1..20)]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (keys(), any::<u64>()).prop_map(|(key, value)| Step::Set(key, value)),
        4 => keys().prop_map(Step::Delete),
        2 => keys().prop_map(Step::Look),
        1 => (bounds(), bounds(), ends()).prop_map(|(from, to, ends)| Step::Range(from, to, ends)),
        1 => (keys(), ends()).prop_map(|(prefix, ends)| Step::Prefix(prefix, ends)),
    ];
    prop::collection::vec(step, 0..unless_interpreted(600, 60) as usize)
}

/// Visits all keys, alternately from both ends.
fn from_ends<T>(mut all: impl DoubleEndedIterator<Item = T>, ends: &[bool]) -> Vec<T> {
    let mut ends = ends.iter().cycle();
    let mut next = || if *ends.next()? { all.next() } else { all.next_back() };
    let found = std::iter::from_fn(&mut next).collect();
    assert!(next().is_none(), "an end that is none");
    found
}

fn agrees<M: Sessions + Default + 'static>(steps: Vec<Step>) {
    let (map, mut standard) = (ArtMap::<Vec<u8>, u64, M>::default(), Standard::new());
    for step in steps {
        match step {
            Step::Set(key, value) => {
                let was_there = standard.insert(key.clone(), value).is_some();
                assert_eq!(map.set(key, value), was_there);
            }
            Step::Delete(key) => {
                assert_eq!(map.remove(key.as_slice()), standard.remove(&key));
            }
            Step::Look(key) => {
                assert_eq!(map.get(key.as_slice()), standard.get(&key).copied());
            }
            Step::Range(from, to, ends) => {
                let range = (from.as_ref(), to.as_ref());
                let ours = || {
                    let range = (from.as_ref(), to.as_ref());
                    map.space().snapshot(|now| {
                        let found = now.range::<_, _, _, Vec<u8>, _>(&map, range);
                        from_ends(found.map(|(key, value)| (key.clone(), *value)), &ends)
                    })
                };
                let theirs = || {
                    let found = standard.range::<Vec<u8>, _>(range);
                    from_ends(found.map(|(key, value)| (key.clone(), *value)), &ends)
                };
                if standard.is_empty() {
                    continue;
                }
                // A range that ends before it begins panics in both.
                let (ours, theirs) = quietly(|| {
                    (
                        catch_unwind(AssertUnwindSafe(ours)).ok(),
                        catch_unwind(AssertUnwindSafe(theirs)).ok(),
                    )
                });
                assert_eq!(ours, theirs);
            }
            Step::Prefix(prefix, ends) => map.space().snapshot(|now| {
                let ours = from_ends(now.prefix(&map, &prefix), &ends);
                let theirs = standard.iter().filter(|(key, _)| key.starts_with(&prefix));
                assert_eq!(ours, from_ends(theirs, &ends));
            }),
        }
    }
    assert_eq!(map.check().leaves, standard.len());
    map.space().snapshot(|now| {
        assert!(now.iter(&map).eq(&standard));
        assert!(now.iter(&map).rev().eq(standard.iter().rev()));
        assert_eq!(now.first(&map), standard.first_key_value());
        assert_eq!(now.last(&map), standard.last_key_value());
    });
    let sorted = ArtMap::from_sorted(map.space(), standard.clone());
    assert_eq!(sorted.check().leaves, standard.len());
    map.space().snapshot(|now| assert!(now.iter(&sorted).eq(&standard)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(unless_interpreted(96, 1) as u32))]

    #[test]
    fn of_bytes_as_the_standard_library(steps in steps()) {
        agrees::<mvrlu::Domain>(steps);
    }

    #[test]
    fn of_bytes_as_the_standard_library_under_rlu(steps in steps()) {
        agrees::<rlu::Domain>(steps);
    }
}

/// Numbers that fill nodes of every size, by single calls and in transactions that see their own
/// changes; then all are removed.
fn grows_and_shrinks<M: Sessions + Default + 'static>(keys: u64) {
    let (map, mut standard) = (ArtMap::<u64, u64, M>::default(), Standard::new());
    let (mut me, mut random) = (map.space().handle(), fastrand::Rng::with_seed(keys));
    for value in 0_u64..unless_interpreted(20_000, 300) {
        let (key, grows) =
            (random.u64(..keys), (value / unless_interpreted(2_000, 100)).is_multiple_of(2));
        match random.u8(if grows { 0..8 } else { 3..12 }) {
            0..5 => assert_eq!(map.by(&mut me).insert(key, value), standard.insert(key, value)),
            5 => assert_eq!(map.by(&mut me).get(&key), standard.get(&key).copied()),
            _ => assert_eq!(map.by(&mut me).remove(&key), standard.remove(&key)),
        }
        if value % unless_interpreted(100, 20) == 0 {
            assert_eq!(map.check().leaves, standard.len());
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
    map.retain(|key, _| key % 3 == 0);
    standard.retain(|key, _| key % 3 == 0);
    me.snapshot(|now| assert!(now.iter(&map).eq(&standard)));
    assert_eq!(map.check().leaves, standard.len());
    map.clear();
    assert!(map.is_empty());
    assert_eq!(map.check(), Default::default());
}

#[test]
fn nodes_of_every_size() {
    for keys in [4, 12, 40, 100, 256, 2_000] {
        grows_and_shrinks::<mvrlu::Domain>(keys);
        grows_and_shrinks::<rlu::Domain>(keys);
    }
}

/// A node has the size that its keys need. While they become fewer, it may be somewhat larger.
#[test]
fn sizes_follow_the_keys() {
    let map = ArtMap::<u8, ()>::new();
    let mut sizes = Vec::new();
    let mut see = |map: &ArtMap<u8, ()>| {
        let now = map.check().sizes;
        if sizes.last().map(|(_, sizes)| *sizes) != Some(now) {
            sizes.push((map.len(), now));
        }
    };
    for byte in 0..=255 {
        map.set(byte, ());
        see(&map);
    }
    for byte in 0..=255 {
        map.delete(&byte);
        see(&map);
    }
    let expected = [
        (1, [0, 0, 0, 0]),
        (2, [1, 0, 0, 0]),
        (5, [0, 1, 0, 0]),
        (17, [0, 0, 1, 0]),
        (49, [0, 0, 0, 1]),
        (38, [0, 0, 1, 0]),
        (14, [0, 1, 0, 0]),
        (3, [1, 0, 0, 0]),
        (1, [0, 0, 0, 0]),
    ];
    assert_eq!(sizes, expected);
}

/// All types in their usual order: numbers with and without a sign, text, and combinations of
/// these.
#[test]
fn in_order() {
    fn is_in_order<K: ArtKey + Ord + Clone + Send + Sync + std::fmt::Debug + 'static>(keys: &[K]) {
        let map: ArtMap<K, usize> = keys.iter().cloned().zip(0..).collect();
        let mut sorted = keys.to_vec();
        sorted.sort();
        sorted.dedup();
        map.space().snapshot(|now| assert!(now.iter(&map).map(|(key, _)| key).eq(&sorted)));
        assert_eq!(map.first().unwrap().0, sorted[0]);
        assert_eq!(map.last().unwrap().0, *sorted.last().unwrap());
        map.check();
        for key in keys {
            assert!(map.delete(key) || map.get(key).is_none());
        }
        assert!(map.is_empty());
    }
    macro_rules! numbers {
        ($($type:ident)*) => {$(
            let mut random = fastrand::Rng::with_seed(1);
            let edges = [<$type>::MIN, <$type>::MAX, 0, 1, <$type>::MAX / 2, <$type>::MIN / 2];
            let near = (0..9).map(|n| n + <$type>::MAX / 3);
            let any = std::iter::repeat_with(|| random.$type(..));
            let any = any.take(unless_interpreted(300, 20) as usize);
            is_in_order::<$type>(&edges.into_iter().chain(near).chain(any).collect::<Vec<_>>());
        )*};
    }
    numbers! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize }
    is_in_order(&['z', 'a', '\u{10_ffff}', '\0', 'é', '語']);
    is_in_order(&[true, false]);
    is_in_order(&["b", "", "a", "ab", "aa", "abc", "é"]);
    is_in_order(&["b", "", "a", "ab"].map(String::from));
    is_in_order(&[[1_u8, 2, 3], [0, 255, 0], [1, 2, 2]]);
    is_in_order(&["x", "", "xy"].map(Box::<str>::from));
    is_in_order(&["x", "", "xy"].map(std::sync::Arc::<str>::from));
}

/// Looked up by the borrowed forms of keys, also in transactions over several collections.
#[test]
fn borrowed_and_with_others() {
    let space = <Space>::default();
    let (paths, sizes) =
        (ArtMap::<String, u32>::new_in(&space), ArtMap::<[u8; 2], u32>::new_in(&space));
    let total = space.transact(|tx| {
        for (n, path) in (1..).zip(["/usr", "/usr/bin", "/usr/lib", "/var"]) {
            tx.insert(&paths, path.to_owned(), n)?;
            tx.set(&sizes, [0, n as u8], n)?;
        }
        tx.delete(&paths, "/var")?;
        Ok(tx.prefix(&paths, "/usr").map(|(_, n)| n).sum::<u32>())
    });
    assert_eq!((total, paths.get("/usr/lib"), paths.get("/var")), (6, Some(3), None));
    assert_eq!(sizes.get(&[0, 4][..]), Some(4));
    assert_eq!(paths.entry("/var".to_owned()).or_insert(9), 9);
    let mut found = Vec::new();
    paths.range("/usr/a".to_owned().."/usr/m".to_owned(), |key, _| {
        found.push(key.clone());
        found.len() < 2
    });
    assert_eq!(found, ["/usr/bin", "/usr/lib"]);
    found.clear();
    paths.prefix("/", |key, _| {
        found.push(key.clone());
        found.len() < 2
    });
    assert_eq!(found, ["/usr", "/usr/bin"]);
}

#[test]
#[should_panic(expected = "not larger than the one before")]
fn from_unsorted() {
    ArtMap::from_sorted(&<Space>::default(), [("b", 1), ("a", 2)]);
}

#[test]
#[should_panic(expected = "begins after its end")]
fn a_range_that_ends_before_it_begins() {
    let (from, to) = (3, 2);
    ArtMap::<u8, ()>::default().range(from..to, |_, ()| true);
}

/// Keys, each of which is a prefix of the next: as many levels of nodes as keys.
#[test]
fn deep() {
    const DEEP: usize = unless_interpreted(4_000, 60) as usize;
    let keys = (0..DEEP).map(|n| (vec![b'x'; n], n));
    let space = <Space>::default();
    let map = ArtMap::from_sorted(&space, keys.clone());
    let other: ArtMap<Vec<u8>, usize> = keys.clone().rev().collect();
    assert_eq!(map.check(), other.check());
    assert_eq!(map.check().leaves, DEEP);
    space.snapshot(|now| assert!(now.iter(&map).map(|(_, n)| *n).rev().eq((0..DEEP).rev())));
    for (key, n) in keys.step_by(7) {
        assert_eq!(map.remove(&key), Some(n));
    }
    map.check();
}

/// Two transactions each search for a key, find nothing, and insert one. One commits first, and the
/// other finds its key: by a range, a prefix, or one key, in nodes of all sizes.
#[test]
fn serializable_transactions_have_no_phantoms() {
    const OTHERS: [u32; 6] = [0, 1, 3, 10, 40, 200];
    for round in 0..unless_interpreted(300, 6) {
        let space = <Space>::default();
        let map = ArtMap::<Vec<u8>, u64>::new_in(&space);
        // Others around it; and one far below, so that bytes are skipped.
        for n in 0..OTHERS[round as usize % OTHERS.len()] {
            map.set(vec![n as u8, 100], 0);
        }
        map.set([&[77; 40][..], b"q"].concat(), 0);
        let (low, high) = (vec![77; 20], [&[77; 20][..], &[0; 9]].concat());
        let is_free =
            |tx: &manycore::collections::space::Transaction<'_, '_, '_, mvrlu::Domain>| {
                let all = [&low, &high].iter().all(|key| !tx.contains_key(&map, *key));
                match round % 3 {
                    0 => all,
                    1 => tx.range(&map, low.clone()..=high.clone()).next().is_none(),
                    _ => tx.range(&map, low.clone()..=high.clone()).next_back().is_none(),
                }
            };
        std::thread::scope(|s| {
            for key in [&low, &high] {
                let (space, map, is_free) = (&space, &map, &is_free);
                s.spawn(move || {
                    space
                        .transact_with(Limit::NONE.serializable(), |tx| {
                            if is_free(tx) {
                                tx.set(map, key.clone(), 1)?;
                            }
                            Ok(())
                        })
                        .unwrap();
                });
            }
        });
        let found = [&low, &high].into_iter().filter(|key| map.contains_key(*key)).count();
        assert_eq!(found, 1, "in round {round}");
        map.check();
    }
}

/// More threads than CPUs. Each inserts its own keys, which differ from others' at all depths, and
/// removes them again. Keys are found where they were inserted, and in order at each moment.
fn nothing_is_lost<M: Sessions + Default + 'static>(threads: usize) {
    const EACH: usize = unless_interpreted(600, 10) as usize;
    let map = ArtMap::<String, usize, M>::default();
    let spell = |n: usize, thread: usize| match n % 3 {
        0 => format!("{n:x}/{thread}"),
        1 => {
            format!("{}{n}:{thread}", "a long way that all of these have in common ".repeat(n % 4))
        }
        _ => format!("{thread}{}.{n}", "\u{7f}".repeat(n % 100)),
    };
    std::thread::scope(|s| {
        for me in 0..threads {
            let map = &map;
            s.spawn(move || {
                let mut handle = map.space().handle();
                for _ in 0..3 {
                    for n in 0..EACH {
                        let mut map = map.by(&mut handle);
                        assert!(map.insert_new(spell(n, me), n), "{}", spell(n, me));
                        let half = spell(n / 2, me);
                        assert_eq!(map.get(half.as_str()), Some(n / 2), "{half}");
                    }
                    handle.snapshot(|now| {
                        assert!(now.iter(map).map(|(key, _)| key).is_sorted());
                        assert!(now.iter(map).rev().map(|(key, _)| key).is_sorted_by(|a, b| a > b));
                        assert!(now.len(map) >= EACH);
                    });
                    for n in (0..EACH).rev() {
                        let mut map = map.by(&mut handle);
                        assert_eq!(map.remove(spell(n, me).as_str()), Some(n), "{}", spell(n, me));
                        let there = map.get(spell(n / 2, me).as_str());
                        assert_eq!(there, (n / 2 < n).then_some(n / 2));
                    }
                }
            });
        }
    });
    assert_eq!(map.check(), Default::default());
}

#[test]
fn nothing_is_lost_while_threads_change_it() {
    nothing_is_lost::<mvrlu::Domain>(unless_interpreted(8, 3) as usize);
    nothing_is_lost::<rlu::Domain>(unless_interpreted(6, 3) as usize);
}

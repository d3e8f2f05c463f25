//! Keys and values of maps in a space, of any types: found by their borrowed forms, and dropped
//! once.

use std::cell::Cell;
use std::collections::BTreeMap as Standard;
use std::hash::{Hash, Hasher};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use manycore::collections::hash::RandomState;
use manycore::collections::space::{ArtKey, BTreeMap, HashMap, Map, Space};
use manycore::collections::versioned::art::Art;
use manycore::collections::versioned::btree::BPlus;
use manycore::collections::versioned::{Growing, Seek, Structure};
use manycore::session::{Conflict, Sessions};
use manycore::{mvrlu, rlu};
use manycore_history::run::unless_interpreted;
use proptest::prelude::*;

/// With nodes of three keys, so that few keys make many levels.
type Small<K, V, M = mvrlu::Domain> = Map<K, V, BPlus<3, 3>, M>;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Counts those that are there.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Counted(u64, Arc<Count>);

#[derive(Debug, Default)]
struct Count(AtomicIsize);

impl Hash for Count {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl PartialEq for Count {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Count {}

impl PartialOrd for Count {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Count {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl ArtKey for Counted {
    type Bytes<'a> = [u8; 8];

    fn bytes(&self) -> [u8; 8] {
        self.0.bytes()
    }
}

impl Counted {
    fn new(number: u64, count: &Arc<Count>) -> Self {
        count.0.fetch_add(1, Ordering::Relaxed);
        Self(number, Arc::clone(count))
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(self.0, &self.1)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let before = self.1.0.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "dropped twice");
    }
}

impl Count {
    fn there(&self) -> isize {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Set(Vec<u8>, u64),
    Delete(Vec<u8>),
    Look(Vec<u8>),
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    // Keys that begin alike, and that are the begin of others; the empty one; long ones.
    prop_oneof![
        9 => prop::collection::vec(0_u8..3, 0..5),
        1 => prop::collection::vec(0_u8..2, 300..302),
    ]
}

fn bounds() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        keys().prop_map(Bound::Included),
        keys().prop_map(Bound::Excluded)
    ]
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        4 => (keys(), any::<u64>()).prop_map(|(key, value)| Operation::Set(key, value)),
        3 => keys().prop_map(Operation::Delete),
        1 => keys().prop_map(Operation::Look),
        1 => (bounds(), bounds()).prop_map(|(from, to)| Operation::Range(from, to)),
    ];
    prop::collection::vec(operation, 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(unless_interpreted(64, 1) as u32))]

    /// Owned keys and values, looked up by their borrowed forms.
    #[test]
    fn of_bytes_as_the_standard_library(operations in operations()) {
        let count = Arc::default();
        {
            let map = Small::<Vec<u8>, Counted>::new();
            let mut standard = Standard::new();
            for operation in operations {
                match operation {
                    Operation::Set(key, value) => {
                        let was_there = standard.insert(key.clone(), value).is_some();
                        prop_assert_eq!(map.set(key, Counted::new(value, &count)), was_there);
                    }
                    Operation::Delete(key) => {
                        prop_assert_eq!(map.delete(key.as_slice()), standard.remove(&key).is_some());
                    }
                    Operation::Look(key) => {
                        let found = map.get_with(key.as_slice(), |value| value.0);
                        prop_assert_eq!(found, standard.get(&key).copied());
                    }
                    Operation::Range(from, to) => {
                        let range = (from.as_ref(), to.as_ref());
                        let ours = || map.space().snapshot(|now| {
                            let range = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
                            let found = now.range::<_, _, _, [u8], _>(&map, range);
                            found.rev().map(|(key, value)| (key.clone(), value.0)).collect::<Vec<_>>()
                        });
                        let theirs = || standard.range::<Vec<u8>, _>(range).rev()
                            .map(|(key, value)| (key.clone(), *value)).collect::<Vec<_>>();
                        if standard.is_empty() {
                            continue;
                        }
                        // A range that ends before it begins panics in both.
                        let (ours, theirs) = quietly(|| (
                            catch_unwind(AssertUnwindSafe(ours)).ok(),
                            catch_unwind(AssertUnwindSafe(theirs)).ok(),
                        ));
                        prop_assert_eq!(ours, theirs);
                    }
                }
            }
            map.check();
            prop_assert_eq!(map.len(), standard.len());
        }
        prop_assert_eq!(count.there(), 0);
    }
}

/// Without messages of panics that are expected.
pub(crate) fn quietly<R>(f: impl FnOnce() -> R) -> R {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
    QUIET.set(true);
    let result = f();
    QUIET.set(false);
    result
}

fn drops_once<P, M: Sessions + Default + 'static>()
where
    P: Seek<Counted, Counted> + Structure<Settings: Default>,
{
    let (keys, values) = (Arc::<Count>::default(), Arc::<Count>::default());
    let space = Space::<M>::default();
    let (key, value) = (|n| Counted::new(n, &keys), |n| Counted::new(n, &values));
    {
        let map = Map::<Counted, Counted, P, M>::new_in(&space);
        let other = HashMap::<u64, Counted, RandomState, M>::new_in(&space);
        for n in 0..unless_interpreted(500, 30) {
            let k = n * 7 % 64;
            assert_eq!(map.get(&key(k)).is_some(), !map.insert_new(key(k), value(n)));
            _ = map.insert(key(k), value(n));
            assert_eq!(
                map.get_or_insert_with(key(k + 1), || value(n)).0 % 1000,
                map.get(&key(k + 1)).unwrap().0
            );
            assert!(map.update(&key(k), |old| value(old.0 + 1)));
            map.update_or_insert(key(k + 2), |old| value(old.map_or(0, |old| old.0)));
            let (now, new) = map.compare_exchange(&key(k), &value(n), value(0)).unwrap_err();
            assert_eq!((now.unwrap().0, new.0), (n + 1, 0));
            map.compare_exchange(&key(k), &value(n + 1), value(n)).unwrap();
            assert!(!map.remove_if(&key(k), |value| value.0 != n));
            assert_eq!(map.remove(&key(k + 1)).map(|value| value.0 > 1 << 40), Some(false));
            space.transact(|tx| {
                tx.insert(&map, key(k), value(n))?;
                tx.insert(&map, key(k), value(n + 1))?;
                tx.set(&other, k, value(n))?;
                tx.insert_new(&map, key(k), value(n))?;
                tx.update(&other, &k, |old| value(old.0 + 1))?;
                tx.delete(&map, &key(k + 2))?;
                Ok(())
            });
            let nothing = space.attempt(|tx| {
                tx.set(&map, key(k), value(0))?;
                tx.set(&map, key(1000), value(0))?;
                tx.delete(&map, &key(k))?;
                Err::<(), _>(Conflict::Retry)
            });
            assert_eq!(nothing, Err(Conflict::Retry));
            assert_eq!(map.get_with(&key(k), |value| value.0), Some(n + 1));
        }
        drop(map);
        // The other one's are still there.
        assert!(other.len() > 20);
    }
    drop(space);
    assert_eq!((keys.there(), values.there()), (0, 0));
}

#[test]
fn every_key_and_value_is_dropped_once() {
    drops_once::<BPlus<3, 3>, mvrlu::Domain>();
    drops_once::<BPlus<3, 3>, rlu::Domain>();
    drops_once::<Art, mvrlu::Domain>();
    drops_once::<Art, rlu::Domain>();
    drops_once::<Growing, mvrlu::Domain>();
    drops_once::<Growing, rlu::Domain>();
}

/// Values are kept as long as a thread can see them, and are then freed by a later thread, not only
/// at the end.
#[test]
fn values_are_dropped_when_nobody_sees_them() {
    let count = Arc::default();
    let map = BTreeMap::<u64, Counted>::new();
    _ = map.set(1, Counted::new(0, &count));
    map.space().snapshot(|now| {
        let seen = now.get(&map, &1).unwrap();
        for n in 1..100 {
            _ = map.set(1, Counted::new(n, &count));
        }
        assert_eq!((seen.0, map.get_with(&1, |value| value.0)), (0, Some(99)));
    });
    for n in 0..unless_interpreted(20_000, 1000) {
        _ = map.set(2, Counted::new(n, &count));
    }
    assert!(count.there() < unless_interpreted(10_000, 900), "{} are left", count.there());
    drop(map);
    assert_eq!(count.there(), 0);
}

#[test]
fn large_and_odd_values() {
    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(64))]
    struct Aligned(u8);
    let space = <Space>::default();
    let (large, aligned) =
        (BTreeMap::<u32, [u64; 10_000]>::new_in(&space), BTreeMap::<char, Aligned>::new_in(&space));
    let (nothing, floats) =
        (BTreeMap::<i8, ()>::new_in(&space), BTreeMap::<String, f64>::new_in(&space));
    for n in 0..unless_interpreted(100, 10) {
        large.set(n as u32, [n; 10_000]);
        aligned.set(char::from(n as u8), Aligned(n as u8));
        nothing.set(-(n as i8), ());
        floats.set(n.to_string(), f64::NAN);
    }
    assert_eq!(large.get_with(&3, |value| value[9_999]), Some(3));
    assert_eq!(aligned.get(&'\x05'), Some(Aligned(5)));
    assert_eq!(nothing.last().unwrap().0, 0);
    assert!(floats.get("7").unwrap().is_nan());
    assert_eq!(floats.first().unwrap().0, "0");
}

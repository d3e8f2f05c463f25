//! Maps in a space. Nodes are divided and merged, versions discarded and values dropped as early as
//! possible.

use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};

use manycore_history::run::{self, Explored, Mix};
use manycore_sim::thread;
use manycore_simulated::collections::hash::FixedState;
use manycore_simulated::collections::space::{HashMap, Map, Space};
use manycore_simulated::collections::versioned::art::Art;
use manycore_simulated::collections::versioned::btree::BPlus;
use manycore_simulated::collections::versioned::{Ordered, Seek, Structure};
use manycore_simulated::session::Sessions;
use manycore_simulated::{mvrlu, rlu};

use crate::explore;

/// A map whose nodes have room for three keys, so that four keys divide a node.
type Small<K, V, M = mvrlu::Domain> = Map<K, V, BPlus<3, 3>, M>;

/// Looks for a grace period after each session.
pub(crate) fn eager() -> Space {
    let config = mvrlu::Config::default()
        .with_segment_bytes(1024)
        .with_segments(2)
        .with_segments_max(16)
        .with_hops_max(0)
        .with_versions_max(0);
    Space::new(mvrlu::Domain::new(Default::default(), config))
}

fn mix(threads: u32, seed: u64) -> Mix {
    Mix { operations: 6, keys: 6, inserts: 55, removes: 35, ..Mix::explored(threads, seed) }
}

/// There are some keys for which no thread asks, so that there is soon more than one node.
fn trees<M: Sessions + 'static>(make: impl Fn() -> Space<M>) {
    for seed in 0..3 {
        let mix = mix(2 + seed as u32 % 2, seed);
        explore().schedules(700).check(|| {
            let map = Small::<u64, u64, M>::new_in(&make());
            (100..103).for_each(|key| _ = map.set(key, 0));
            run::check_map(Explored, &mix, &map);
            map.check();
        });
        explore().schedules(700).check(|| {
            let set = Small::<u64, (), M>::new_in(&make());
            run::check_set(Explored, &mix, &set);
            set.check();
        });
    }
}

#[test]
fn trees_of_mvrlu() {
    trees(eager);
}

#[test]
fn trees_of_rlu() {
    trees(Space::<rlu::Domain>::default);
    trees(|| Space::<rlu::Domain>::new(rlu::Domain::deferring()));
}

#[test]
fn tables() {
    for seed in 0..3 {
        let mix = mix(2 + seed as u32 % 2, seed);
        explore().schedules(700).check(|| {
            run::check_map(Explored, &mix, &HashMap::<u64, u64, FixedState, _>::new_in(&eager()));
        });
    }
}

const PAIRS: u64 = 3;

/// One key of each pair is there, sometimes in one map and sometimes in the other. A reader finds
/// exactly one, with its value.
fn moves_between_two<P, M: Sessions + 'static>(make: impl Fn() -> Space<M>)
where
    P: Seek<u64, u64> + Ordered<u64, u64> + Structure<Settings: Default>,
{
    explore().schedules(700).check(|| {
        let space = make();
        let one = Map::<u64, u64, P, M>::new_in(&space);
        let other = HashMap::<_, _, FixedState, _>::new_in(&space);
        (0..PAIRS).for_each(|pair| _ = one.set(pair, pair));
        thread::parallel(3, |me| {
            let mut handle = space.handle();
            for round in 0..2 {
                let pair = (u64::from(me) + round) % PAIRS;
                handle.transact(|tx| match tx.remove(&one, &pair)? {
                    Some(value) => tx.insert_new(&other, pair, value).map(|new| assert!(new)),
                    None => {
                        let value = tx.remove(&other, &pair)?.expect("it is in one of the two");
                        tx.insert_new(&one, pair, value).map(|new| assert!(new))
                    }
                });
                let mut found = Vec::new();
                handle.snapshot(|now| {
                    now.for_each(&other, |key, value| {
                        found.push((*key, *value));
                        true
                    });
                    found.extend(now.iter(&one).rev().map(|(key, value)| (*key, *value)));
                });
                found.sort_unstable();
                assert!(
                    found.iter().copied().eq((0..PAIRS).map(|pair| (pair, pair))),
                    "a look at two moments: {found:?}"
                );
            }
        });
    });
}

#[test]
fn between_two_maps() {
    moves_between_two::<BPlus<3, 3>, _>(eager);
    moves_between_two::<BPlus<3, 3>, _>(Space::<rlu::Domain>::default);
    moves_between_two::<Art, _>(eager);
    moves_between_two::<Art, _>(Space::<rlu::Domain>::default);
}

/// A transaction changes a leaf, and merges it into its left neighbour. A thread that looks up one
/// key finds the state before the transaction, or after it, but no intermediate one.
fn a_leaf_is_merged<M: Sessions + 'static>(make: impl Fn() -> Space<M>) {
    const NEVER: u64 = 1_000;
    explore().schedules(700).check(|| {
        let map = Small::<u64, u64, M>::new_in(&make());
        (1..7).for_each(|key| _ = map.set(key, 1));
        thread::parallel(2, |me| {
            let mut handle = map.space().handle();
            if me == 0 {
                handle.transact(|tx| {
                    tx.set(&map, 4, NEVER)?;
                    (1..4).try_for_each(|key| tx.delete(&map, &key).map(drop))?;
                    tx.set(&map, 4, 2)
                });
                return;
            }
            for _ in 0..3 {
                let found = map.by(&mut handle).get(&4);
                assert!(matches!(found, Some(1 | 2)), "a value that was never there: {found:?}");
            }
        });
        map.check();
    });
}

#[test]
fn nobody_sees_what_a_transaction_had_for_a_while() {
    a_leaf_is_merged(eager);
    a_leaf_is_merged(Space::<rlu::Domain>::default);
}

const THERE: u64 = 0x00C0_FFEE;

static ALIVE: AtomicIsize = AtomicIsize::new(0);

/// A value that says whether it is there.
struct Live(AtomicU64);

impl Live {
    fn new() -> Self {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Self(AtomicU64::new(THERE))
    }

    fn is_alive(&self) -> bool {
        self.0.load(Ordering::Relaxed) == THERE
    }

    fn is_there(&self) {
        assert!(self.is_alive(), "a value that was dropped");
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.is_there();
        self.0.store(0, Ordering::Relaxed);
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Threads insert values, remove them and give up halfway, while others read them.
fn values<P, M: Sessions + 'static>(make: impl Fn() -> Space<M>)
where
    P: Seek<u64, u64> + Ordered<u64, u64> + Structure<Settings: Default>,
{
    explore().schedules(700).check(|| {
        let space = make();
        let tree = Map::<u64, Live, P, M>::new_in(&space);
        let table = HashMap::<_, _, FixedState, _>::new_in(&space);
        (0..3).for_each(|key| _ = tree.set(key, Live::new()));
        thread::parallel(3, |me| {
            let (me, mut handle) = (u64::from(me), space.handle());
            for round in 0..2 {
                match (me + round) % 3 {
                    0 => handle.snapshot(|now| {
                        let of_tree: Vec<_> = now.iter(&tree).collect();
                        now.for_each(&table, |_: &u64, value: &Live| {
                            value.is_there();
                            true
                        });
                        of_tree.iter().for_each(|(_, value)| value.is_there());
                    }),
                    1 => handle.transact(|tx| {
                        tx.set(&tree, me, Live::new())?;
                        tx.set(&table, me, Live::new())?;
                        tx.delete(&tree, &round).map(drop)
                    }),
                    _ => {
                        _ = tree.by(&mut handle).set(round, Live::new());
                        _ = table.by(&mut handle).delete(&me);
                        _ = tree.by(&mut handle).get_with(&1, Live::is_there);
                    }
                }
            }
        });
        drop((tree, table, space));
        assert_eq!(ALIVE.swap(0, Ordering::Relaxed), 0, "not dropped at the end");
    });
}

#[test]
fn values_are_dropped_once_and_not_too_soon() {
    values::<BPlus<3, 3>, _>(eager);
    values::<BPlus<3, 3>, _>(Space::<rlu::Domain>::default);
    values::<BPlus<3, 3>, _>(|| Space::<rlu::Domain>::new(rlu::Domain::deferring()));
    values::<Art, _>(eager);
    values::<Art, _>(Space::<rlu::Domain>::default);
    values::<Art, _>(|| Space::<rlu::Domain>::new(rlu::Domain::deferring()));
}

/// One thread replaces a value repeatedly, and drops values that no thread can see any more; the
/// values that the other has found stay.
#[test]
fn nobody_sees_a_value_that_was_dropped() {
    explore().check(|| {
        let space = eager();
        let map = Small::<u64, Live>::new_in(&space);
        map.set(1, Live::new());
        let is_there = thread::parallel(2, |me| {
            let mut handle = space.handle();
            (0..6).all(|_| match me {
                0 => map.by(&mut handle).set(1, Live::new()),
                _ => handle.snapshot(|now| {
                    let found = now.get(&map, &1);
                    (2..5).for_each(|key| assert!(!now.contains_key(&map, &key)));
                    found.is_some_and(Live::is_alive)
                }),
            })
        });
        assert!(is_there.into_iter().all(|is| is), "a value that was dropped");
        drop((map, space));
        assert_eq!(ALIVE.swap(0, Ordering::Relaxed), 0, "not dropped at the end");
    });
}

//! The adaptive radix tree: nodes become larger and smaller, are inserted between others, and are
//! removed.

use std::mem::ManuallyDrop;

use manycore_history::run::{self, Explored, Mix};
use manycore_sim::thread;
use manycore_simulated::collections::space::{ArtMap, Handle, Map, Space};
use manycore_simulated::collections::versioned::art::Art;
use manycore_simulated::collections::versioned::{Ordered, Seek, Structure};
use manycore_simulated::session::Sessions;
use manycore_simulated::{ConcurrentMap, MapHandle, mvrlu, rlu};

use crate::explore;
use crate::space::eager;

fn mix(threads: u32, seed: u64) -> Mix {
    Mix { operations: 6, keys: 6, inserts: 55, removes: 35, ..Mix::explored(threads, seed) }
}

/// With this many keys in addition to those of the threads, a node is about to become larger or
/// smaller.
const OTHERS: [u64; 5] = [0, 2, 12, 13, 44];

fn numbers<M: Sessions + 'static>(make: impl Fn() -> Space<M>) {
    for (seed, others) in (0..).zip(OTHERS) {
        let mix = mix(2 + seed as u32 % 2, seed);
        explore().schedules(500).check(|| {
            let map = ArtMap::<u64, u64, M>::new_in(&make());
            (0..others).for_each(|n| _ = map.set(20 + 5 * n, 0));
            run::check_map(Explored, &mix, &map);
            map.check();
        });
        explore().schedules(300).check(|| {
            let set = ArtMap::<u64, (), M>::new_in(&make());
            run::check_set(Explored, &mix, &set);
            set.check();
        });
    }
}

#[test]
fn numbers_of_mvrlu() {
    numbers(eager);
}

#[test]
fn numbers_of_rlu() {
    numbers(Space::<rlu::Domain>::default);
    numbers(|| Space::<rlu::Domain>::new(rlu::Domain::deferring()));
}

/// Keys that differ at several depths. Some are the prefixes of others, and some are equal for
/// longer than a node stores.
const KEYS: [&[u8]; 6] = [
    b"k",
    b"kkkkkkkkkkkkkkkkkkkkk1",
    b"kkkkkkkkkkkkkkkkkkkkk2",
    b"kkkkk1",
    b"",
    b"kkkkkkkkkkkkkkkk",
];

/// A map whose keys are spelled so.
struct Spelled<M: Sessions + 'static>(ArtMap<Vec<u8>, u64, M>);

struct SpelledHandle<'a, M: Sessions + 'static> {
    map: &'a ArtMap<Vec<u8>, u64, M>,
    me: Handle<'a, M>,
}

impl<M: Sessions + 'static> ConcurrentMap<u64, u64> for Spelled<M> {
    type Handle<'a> = SpelledHandle<'a, M>;

    fn handle(&self) -> SpelledHandle<'_, M> {
        SpelledHandle { map: &self.0, me: self.0.space().handle() }
    }
}

impl<M: Sessions> MapHandle<u64, u64> for SpelledHandle<'_, M> {
    fn get(&mut self, key: &u64) -> Option<u64> {
        self.map.by(&mut self.me).get(KEYS[*key as usize])
    }

    fn insert(&mut self, key: u64, value: u64) -> Option<u64> {
        self.map.by(&mut self.me).insert(KEYS[key as usize].to_vec(), value)
    }

    fn remove(&mut self, key: &u64) -> Option<u64> {
        self.map.by(&mut self.me).remove(KEYS[*key as usize])
    }
}

fn paths<M: Sessions + 'static>(make: impl Fn() -> Space<M>) {
    for seed in 0..4 {
        let mix = mix(2 + seed as u32 % 2, seed);
        explore().schedules(700).check(|| {
            let map = Spelled(ArtMap::new_in(&make()));
            if seed % 2 == 0 {
                // So that nodes stay.
                _ = map.0.set(b"kkkkkkkkkkkkkkkkkkkkk3".to_vec(), 0);
                _ = map.0.set(b"kkkkkkkkkkkkkkkkkkkkk4".to_vec(), 0);
            }
            run::check_map(Explored, &mix, &map);
            map.0.check();
        });
    }
}

#[test]
fn paths_of_mvrlu() {
    paths(eager);
}

#[test]
fn paths_of_rlu() {
    paths(Space::<rlu::Domain>::default);
    paths(|| Space::<rlu::Domain>::new(rlu::Domain::deferring()));
}

/// Other threads' views of a key that a transaction changes more than once.
const KEPT: u64 = 3;
const BETWEEN: u64 = 4;
const NEVER: u64 = 1_000;

/// A transaction inserts and removes keys again, and gives another key several values, so nodes
/// that it has changed are replaced. A thread that looks up one key finds the state before the
/// transaction, or after it, but no intermediate one.
fn not_between<P, M: Sessions + 'static>(make: impl Fn() -> Space<M>)
where
    P: Seek<u64, u64> + Ordered<u64, u64> + Structure<Settings: Default>,
{
    for others in [1, 2, 3, 14, 47] {
        explore().schedules(200).check(|| {
            let map = Map::<u64, u64, P, M>::new_in(&make());
            (0..others).for_each(|n| _ = map.set(100 + n, 0));
            map.set(KEPT, 1);
            thread::parallel(2, |me| {
                let mut handle = map.space().handle();
                if me == 0 {
                    handle.transact(|tx| {
                        (BETWEEN..BETWEEN + 3)
                            .try_for_each(|n| tx.set(&map, n, NEVER).map(drop))?;
                        tx.set(&map, KEPT, NEVER)?;
                        tx.delete(&map, &KEPT)?;
                        (BETWEEN..BETWEEN + 3).try_for_each(|n| tx.delete(&map, &n).map(drop))?;
                        tx.set(&map, KEPT, 2).map(drop)
                    });
                    return;
                }
                for _ in 0..3 {
                    let kept = map.by(&mut handle).get(&KEPT);
                    assert!(matches!(kept, Some(1 | 2)), "a value that was never there: {kept:?}");
                    let between = map.by(&mut handle).get(&BETWEEN);
                    assert_eq!(between, None, "a key that was never there");
                }
            });
        });
    }
}

#[test]
fn nobody_sees_what_a_transaction_had_for_a_while() {
    not_between::<Art, mvrlu::Domain>(eager);
    not_between::<Art, rlu::Domain>(Space::default);
}

/// A key that differs from others only after 21 bytes, at this one.
fn far(byte: u8) -> Vec<u8> {
    [&[b'k'; 21][..], &[byte]].concat()
}

/// A thread's actions, one after the other, with keys of its own.
#[derive(Clone, Debug)]
enum Step {
    Add(Vec<u8>),
    Remove(Vec<u8>),
    /// One that no thread owns, and that stays.
    Look(Vec<u8>),
}
use Step::{Add, Look, Remove};

/// Threads change a tree at the same place, each in another way. The keys are where they were put.
fn at_one_place<M: Sessions + 'static>(
    make: impl Fn() -> Space<M>,
    begin: &[Vec<u8>],
    threads: &[&[Step]],
) {
    explore().schedules(300).check(|| {
        // If a key is lost the tree is inconsistent, and must not be walked again.
        let map = ManuallyDrop::new(ArtMap::<Vec<u8>, u64, M>::new_in(&make()));
        begin.iter().for_each(|key| _ = map.set(key.clone(), 7));
        thread::parallel(threads.len() as u32, |me| {
            let mut handle = map.space().handle();
            let mut map = map.by(&mut handle);
            for step in threads[me as usize] {
                match step {
                    Add(key) => {
                        assert_eq!(map.insert(key.clone(), 7), None, "{step:?} is not new");
                        assert_eq!(map.get(key), Some(7), "lost: {step:?}");
                    }
                    Remove(key) => {
                        assert_eq!(map.remove(key), Some(7), "lost: {step:?}");
                        assert_eq!(map.get(key), None, "still there: {step:?}");
                    }
                    Look(key) => assert_eq!(map.get(key), Some(7), "lost: {step:?}"),
                }
            }
        });
        map.check();
        let mut expected: Vec<_> = begin.to_vec();
        for step in threads.iter().copied().flatten() {
            match step {
                Add(key) => expected.push(key.clone()),
                Remove(key) => expected.retain(|other| other != key),
                Look(_) => {}
            }
        }
        expected.sort_unstable();
        let found = map
            .space()
            .snapshot(|now| now.iter(&*map).map(|(key, _)| key.clone()).collect::<Vec<_>>());
        assert_eq!(found, expected, "lost, or still there");
        drop(ManuallyDrop::into_inner(map));
    });
}

/// All at once, of any mechanism.
fn at_each_place(begin: &[Vec<u8>], threads: &[&[Step]]) {
    at_one_place(eager, begin, threads);
    at_one_place(Space::<rlu::Domain>::default, begin, threads);
}

fn some(bytes: impl IntoIterator<Item = u8>) -> Vec<Vec<u8>> {
    bytes.into_iter().map(far).collect()
}

/// A node is inserted above another, while the lower one gets a key for which it has room, or
/// becomes larger.
#[test]
fn ways_part_above() {
    for others in [2, 3, 4, 16] {
        at_each_place(
            &some(0..others),
            &[
                &[Add(b"kkkkk1".to_vec()), Look(far(0))],
                &[Add(far(100)), Look(far(1))],
                &[Look(far(0)), Add(b"kkkkkkkkkk".to_vec())],
            ],
        );
    }
}

/// A node is removed, since it has one key left, while another is inserted above or below.
#[test]
fn a_node_is_not_needed() {
    at_each_place(
        &some(0..2),
        &[
            &[Remove(far(1)), Add(far(1))],
            &[Add(far(2)), Look(far(0)), Remove(far(2))],
            &[Add(b"kkkkk1".to_vec()), Remove(b"kkkkk1".to_vec()), Look(far(0))],
        ],
    );
    // The key that is left is the one that ends there.
    at_each_place(
        &[vec![b'k'; 21], far(1), b"kkkkk1".to_vec()],
        &[
            &[Remove(far(1))],
            &[Add(far(2)), Look(vec![b'k'; 21])],
            &[Remove(b"kkkkk1".to_vec()), Add(Vec::new()), Look(vec![b'k'; 21])],
        ],
    );
}

/// Nodes of each size become larger and smaller at the same time.
#[test]
fn nodes_change_their_size() {
    for others in [4, 16, 48] {
        at_each_place(
            &some(0..others),
            &[
                &[Add(far(100)), Remove(far(100))],
                &[Remove(far(2)), Add(far(101)), Look(far(0))],
                &[Add(b"kk".to_vec()), Look(far(1)), Remove(far(3))],
            ],
        );
    }
}

/// A wide node, some of whose parts have one key or none, and which is about to become smaller.
#[test]
fn parts_come_and_go() {
    at_each_place(
        &some((0..32).chain(64..81).chain([200])),
        &[
            &[Remove(far(200)), Add(far(201))],
            &[Add(far(202)), Remove(far(202)), Look(far(80))],
            &[Add(far(255)), Look(far(0)), Remove(far(255))],
        ],
    );
    let begin = some((0..32).chain(64..71).chain(100..106));
    let wide = |tail: &[Step]| {
        let mut steps: Vec<_> = (0..6).map(|n| Add(far(240 + n))).collect();
        steps.extend(tail.iter().cloned());
        steps
    };
    at_each_place(
        &begin,
        &[
            &wide(&[Remove(far(70)), Remove(far(69)), Remove(far(68))]),
            &[Remove(far(105)), Remove(far(104)), Look(far(64))],
            &[Add(far(3).split_off(20)), Look(far(100)), Look(far(31))],
        ],
    );
}

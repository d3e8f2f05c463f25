//! Calls of operations that depend on each other, beside transactions that change what the
//! operations read, and images. After a cut, the operations run again in the order of stamps, and
//! have to produce the same results.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use fastrand::Rng;
use manycore_history::run::{Explored, Threads};
use timestone_simulated::device::Simulated;
use timestone_simulated::{
    Durability, Isolation, Map, Operation, Operations, Options, ReadOnly, Stop, Store, Transaction,
};

use crate::explore;
use crate::histories::{self, OBJECTS};
use crate::host::Host;

/// Changes all objects but one by what that one is.
fn spread(tx: &mut Transaction<'_, '_>, from: &u64) -> Result<(), Stop> {
    let map: Map<u64, u64> = tx.map("objects")?;
    let value = map.get(tx, from).expect("the object is there");
    for object in (0..OBJECTS).filter(|object| object != from && (object + from) % 2 == 1) {
        map.update(tx, &object, |other| *other = other.wrapping_mul(3).wrapping_add(value + 1))?;
    }
    Ok(())
}

const SPREAD: Operation<u64> = Operation::new("spread", 1, spread);
const ALL: Operations = &[&SPREAD];

fn options() -> Options {
    histories::options().with_operations(ALL)
}

/// The objects of a store that no thread writes.
fn left(disk: &Simulated) -> Vec<u64> {
    let opened = ReadOnly::open_on(Arc::new(disk.clone()), options());
    let store = opened.unwrap_or_else(|error| panic!("not recovered: {error}"));
    let map: Map<u64, u64> = store.map("objects").unwrap();
    (0..OBJECTS).map(|object| map.get(&store, &object).unwrap_or(0)).collect()
}

/// Threads call the operation and change objects; the disk, and how many calls its journal has.
fn run(disk: &Simulated, threads: u32, seed: u64, has_image: bool) -> (Vec<u64>, u64) {
    let store = Store::open_on(Arc::new(Host(disk.clone())), options()).unwrap();
    let map: Map<u64, u64> = store.map("objects").unwrap();
    Explored.parallel(threads, |thread| {
        let mut me = store.register().unwrap();
        let mut rng = Rng::with_seed(seed * 10 + u64::from(thread));
        for round in 0..2 {
            let object = rng.u64(..OBJECTS);
            if rng.bool() {
                let change = |value: &mut u64| *value = value.wrapping_mul(5).wrapping_add(7);
                me.run_with((Durability::Buffered, Isolation::Snapshot), |tx| {
                    map.update(tx, &object, change)
                })
                .unwrap();
            } else {
                let how = if rng.bool() { Durability::EVENTUAL } else { Durability::Durable };
                me.call_with(how, &SPREAD, &object).unwrap();
            }
            if has_image && thread == 0 && round == 0 {
                store.checkpoint().unwrap();
            }
        }
    });
    store.sync().unwrap();
    let mut me = store.register().unwrap();
    let now = me.read(|now| {
        (0..OBJECTS).map(|object| map.get(now, &object).expect("it is there")).collect()
    });
    let calls = store.stats().operations;
    // As in a crash: the writes of the store's drop are ignored.
    let at = Explored.aside(|| disk.survivor());
    assert_eq!(Explored.aside(|| left(&at)), now, "what runs again does something else");
    (now, calls)
}

fn operations(has_image: bool) {
    let before = histories::filled();
    let calls = RefCell::new(0);
    for seed in 0..4 {
        explore().schedules(400).check(|| {
            fastrand::seed(seed);
            let disk = Explored.aside(|| before.survivor());
            let (last, some) = run(&disk, 2 + (seed % 2) as u32, seed, has_image);
            *calls.borrow_mut() += some;
            Explored.aside(|| {
                let mut states = BTreeSet::new();
                let mut rng = Rng::with_seed(seed);
                disk.recording().cuts(0, |_, cut| {
                    cut.images(&mut rng, 1, false, |disk| _ = states.insert(left(&disk)));
                });
                assert!(states.contains(&last), "{states:?}, and {last:?} was the last");
            });
        });
    }
    assert!(calls.into_inner() > 100, "no calls");
}

#[test]
fn beside_each_other() {
    operations(false);
}

#[test]
fn beside_images() {
    operations(true);
}

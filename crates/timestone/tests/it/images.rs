//! Images beside transactions: no commit waits for one, and recovery from it is right.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use timestone::device::{Fault, Faulty, Simulated};
use timestone::{Durability, Map, Options, Store};

use crate::gated::Gated;
use crate::store::{open, options};

/// A disk on which images are flushed only while the gate is open.
fn gated() -> Gated {
    Gated::new(|name| name.starts_with("image"))
}

fn numbers(store: &Store) -> BTreeMap<u64, u64> {
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut all = BTreeMap::new();
    store
        .register()
        .unwrap()
        .read(|now| map.for_each(now, |key, value| _ = all.insert(key, value)));
    all
}

#[test]
fn commits_go_on_while_an_image_is_written_and_are_there_after_a_cut_in_it() {
    let disk = gated();
    let store = Store::open_on(Arc::new(disk.clone()), options()).unwrap();
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    let wanted: BTreeMap<_, _> = (0..200).map(|key| (key, key + 1)).collect();
    std::thread::scope(|scope| {
        let shut = disk.shut();
        let image = scope.spawn(|| store.checkpoint());
        disk.wait_for_flush();
        // The image cannot be finished before these have returned.
        for (key, value) in &wanted {
            me.run(|tx| map.insert(tx, *key, *value)).unwrap();
        }
        assert_eq!(numbers(&open(&disk.disk.survivor())), wanted, "a cut beside the image");
        drop(shut);
        image.join().unwrap().unwrap();
    });
    assert_eq!(numbers(&open(&disk.disk.survivor())), wanted, "a cut after the image");
    assert!(store.stats().images >= 1, "{:?}", store.stats());
}

#[test]
fn a_commit_for_which_the_journal_has_no_room_waits_for_the_image_and_then_goes_on() {
    let disk = gated();
    let store = Store::open_on(Arc::new(disk.clone()), options()).unwrap();
    let map: Map<u64, [u64; 100]> = store.map("large").unwrap();
    let mut me = store.register().unwrap();
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let shut = disk.shut();
        scope.spawn(|| store.checkpoint().unwrap());
        disk.wait_for_flush();
        let committer = scope.spawn(|| {
            let mut me = store.register().unwrap();
            // More than the journal has room for.
            for key in 0..2000 {
                me.run(|tx| map.insert(tx, key % 20, [key; 100])).unwrap();
            }
            has_ended.store(true, Ordering::Relaxed);
        });
        // Snapshots go on while the commit waits.
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert!(!has_ended.load(Ordering::Relaxed), "more is in the journal than it has room for");
        me.read(|now| assert_eq!(map.len(now), 20));
        drop(shut);
        committer.join().unwrap();
    });
    assert!(store.stats().images > 2, "{:?}", store.stats());
    let after = open(&disk.disk.survivor());
    let map: Map<u64, [u64; 100]> = after.map("large").unwrap();
    let last = after.register().unwrap().read(|now| map.get(now, &19));
    assert_eq!(last, Some([1999; 100]));
}

/// Objects come, change and go while images are written, and slots are used again.
fn churn(store: &Store, me: u64, rng: &mut Rng, rounds: u64) {
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut member = store.register().unwrap();
    for round in 0..rounds {
        let key = rng.u64(0..60) * 2 + me;
        member
            .run_with(Durability::EVENTUAL, |tx| {
                // The sum over a thread's keys and its counter stays 0.
                let before = map.remove(tx, &key)?.unwrap_or(0);
                let value = if round % 3 == 0 { 0 } else { round };
                if value != 0 {
                    map.insert(tx, key, value)?;
                }
                let counter = 1000 + me;
                let sum = map.get(tx, &counter).unwrap_or(0);
                map.insert(tx, counter, sum.wrapping_add(before).wrapping_sub(value)).map(|_| ())
            })
            .unwrap();
    }
}

fn judge(all: &BTreeMap<u64, u64>) {
    for me in 0..2 {
        let of = |key: &u64| if *key >= 1000 { *key == 1000 + me } else { *key % 2 == me };
        let sum = all
            .iter()
            .filter(|(key, _)| of(key))
            .fold(0_u64, |sum, (_, value)| sum.wrapping_add(*value));
        assert_eq!(sum, 0, "a part of a transaction: {all:?}");
    }
}

#[test]
fn a_cut_at_any_call_beside_images_leaves_whole_transactions() {
    let disk = Simulated::new();
    let window = std::time::Duration::from_micros(200);
    let store = Store::open_on(Arc::new(disk.clone()), options().with_window(window)).unwrap();
    store.map::<u64, u64>("numbers").unwrap();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|me| {
                let store = &store;
                scope.spawn(move || churn(store, me, &mut Rng::with_seed(me), 3000))
            })
            .collect();
        while !workers.iter().all(|worker| worker.is_finished()) {
            store.checkpoint().unwrap();
        }
    });
    let images = store.stats().images;
    assert!(images > 2, "{images}");
    store.close().unwrap();
    let mut rng = Rng::with_seed(5);
    let recording = disk.recording();
    let (mut visited, mut images) = (0, 0);
    let one_in = disk.calls().div_ceil(400);
    recording.cuts(0, |_, cut| {
        visited += 1;
        if visited % one_in == 0 {
            cut.images(&mut rng, 2, false, |left| {
                images += 1;
                judge(&numbers(&open(&left)));
            });
        }
    });
    assert!(images > 200, "{images}");
}

#[test]
fn an_image_that_cannot_be_written_is_tried_again_and_commits_go_on_meanwhile() {
    let disk = Arc::new(Faulty::new(Simulated::new()));
    let store =
        Store::open_on(disk.clone(), Options::default().with_journal_bytes(1 << 20)).unwrap();
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    disk.plan(0, Fault::Full);
    assert!(store.checkpoint().is_err(), "the disk is full");
    for key in 0..50 {
        me.run(|tx| map.insert(tx, key, key)).unwrap();
    }
    disk.heal();
    store.checkpoint().unwrap();
    drop(me);
    assert_eq!(numbers(&open(&disk.below().survivor())).len(), 50);
}

//! Images beside commits that make objects and end them, and that fill the journal.

use std::sync::Arc;

use fastrand::Rng;
use manycore_history::run::{Explored, Threads};
use timestone_simulated::device::Simulated;
use timestone_simulated::{Durability, Map, Options, ReadOnly, Store};

use crate::explore;
use crate::histories;
use crate::host::Host;

/// The states that a cut at each call can leave, for at most about `most` calls.
fn cuts<V: timestone_simulated::Persist>(
    disk: &Simulated,
    options: Options,
    most: usize,
    mut visit: impl FnMut(usize, &ReadOnly, Map<u64, V>),
) {
    let (mut rng, mut visited) = (Rng::with_seed(1), 0);
    let one_in = disk.calls().div_ceil(most);
    disk.recording().cuts(0, |calls, cut| {
        visited += 1;
        if visited % one_in != 0 {
            return;
        }
        cut.images(&mut rng, 1, false, |left| {
            let opened = ReadOnly::open_on(Arc::new(left), options);
            let store = opened.unwrap_or_else(|error| panic!("not recovered: {error}"));
            if let Ok(map) = store.map("made") {
                visit(calls, &store, map);
            }
        });
    });
}

/// Keys are inserted one after the other, and each transaction also changes the key before. The
/// operating system has some of them, and the disk has others.
#[test]
fn objects_come_and_go() {
    let before = histories::filled();
    let options = histories::options();
    explore().check(|| {
        fastrand::seed(1);
        let disk = Explored.aside(|| before.survivor());
        let store = Store::open_on(Arc::new(Host(disk.clone())), options).unwrap();
        let map: Map<u64, u64> = store.map("made").unwrap();
        Explored.parallel(2, |thread| {
            let mut me = store.register().unwrap();
            for key in 1..=4 {
                if thread == 1 {
                    store.checkpoint().unwrap();
                    return;
                }
                let how = if key % 3 == 0 { Durability::Durable } else { Durability::Buffered };
                me.run_with(how, |tx| {
                    map.insert(tx, key, key)?;
                    map.remove(tx, &(key - 2.min(key))).map(drop)
                })
                .unwrap();
            }
        });
        store.close().unwrap();
        Explored.aside(|| {
            cuts::<u64>(&disk, options, usize::MAX, |calls, store, map| {
                let mut keys = Vec::new();
                map.for_each(store, |key, _| keys.push(key));
                keys.sort_unstable();
                let last = keys.last().copied().unwrap_or(0);
                let wanted: Vec<_> = (1.max(last.saturating_sub(1))..=last).collect();
                assert_eq!(keys, wanted, "half of a commit after {calls} calls");
            });
        });
    });
}

/// More commits than the journal has room for: one thread writes an image, and the other one goes
/// on.
#[test]
fn the_journal_is_used_again() {
    type Large = [u64; 900];
    let before = histories::filled();
    let options = histories::options().with_ring_bytes(32 << 10);
    explore().at_least(4).steps_max(1 << 20).check(|| {
        fastrand::seed(1);
        let disk = Explored.aside(|| before.survivor());
        let store = Store::open_on(Arc::new(Host(disk.clone())), options).unwrap();
        let map: Map<u64, Large> = store.map("made").unwrap();
        let acknowledged = Explored.parallel(2, |thread| {
            let (mut me, mut acknowledged) = (store.register().unwrap(), Vec::new());
            for count in 1..=80 {
                let key = u64::from(thread) + 2 * (count % 2);
                me.run(|tx| map.insert(tx, key, [count; 900]).map(drop)).unwrap();
                acknowledged.push((disk.calls(), count));
            }
            acknowledged
        });
        assert!(store.stats().images > 0, "{:?}", store.stats());
        drop(store);
        Explored.aside(|| {
            cuts::<Large>(&disk, options, 60, |calls, store, map| {
                for (thread, acknowledged) in acknowledged.iter().enumerate() {
                    let promised = acknowledged.iter().take_while(|(at, _)| *at <= calls).last();
                    let value = |key| map.get(store, &key).map_or(0, |value| value[0]);
                    let values = [0, 2].map(|key| value(thread as u64 + key));
                    let last = values.into_iter().max().unwrap_or(0);
                    let is_there = last >= promised.map_or(0, |(_, count)| *count);
                    assert!(
                        is_there && values.contains(&last.saturating_sub(1)),
                        "lost: {values:?}"
                    );
                }
            });
        });
    });
}

//! Lists, and bytes of any length.

use std::collections::VecDeque;
use std::sync::Arc;

use fastrand::Rng;
use timestone::device::Simulated;
use timestone::{Blob, Durability, Error, List, Map, Member, Options, ReadOnly, Store, offline};

use crate::store::{open, options};

/// The same operations on a list, and on one of the standard library.
fn step(rng: &mut Rng, list: List<u32>, me: &mut Member<'_>, model: &mut VecDeque<u32>) {
    let (value, at) = (rng.u32(..), rng.usize(..=model.len()));
    let go =
        |cursor: &mut timestone::Cursor<'_, '_, '_, u32>| (0..at).for_each(|_| cursor.advance());
    match rng.u8(..8) {
        0 => {
            me.run_with(Durability::EVENTUAL, |tx| list.push_front(tx, value)).unwrap();
            model.push_front(value);
        }
        1 => {
            me.run_with(Durability::EVENTUAL, |tx| list.push_back(tx, value)).unwrap();
            model.push_back(value);
        }
        2 => {
            let popped = me.run_with(Durability::EVENTUAL, |tx| list.pop_front(tx)).unwrap();
            assert_eq!(popped, model.pop_front());
        }
        3 => {
            let popped = me.run_with(Durability::EVENTUAL, |tx| list.pop_back(tx)).unwrap();
            assert_eq!(popped, model.pop_back());
        }
        4 | 5 => {
            let run = me.run_with(Durability::EVENTUAL, |tx| {
                let mut cursor = list.cursor(tx);
                go(&mut cursor);
                cursor.insert(value)
            });
            run.unwrap();
            model.insert(at, value);
        }
        6 => {
            let run = me.run_with(Durability::EVENTUAL, |tx| {
                let mut cursor = list.cursor(tx);
                go(&mut cursor);
                cursor.replace(value)
            });
            let slot = model.get_mut(at);
            assert_eq!(run.unwrap(), slot.map(|slot| std::mem::replace(slot, value)));
        }
        _ => {
            let run = me.run_with(Durability::EVENTUAL, |tx| {
                let mut cursor = list.cursor(tx);
                go(&mut cursor);
                let removed = cursor.remove()?;
                Ok((removed, cursor.value()))
            });
            let removed = model.remove(at);
            assert_eq!(run.unwrap(), (removed, removed.and_then(|_| model.get(at).copied())));
        }
    }
    let (all, first, last) = me.read_latest(|now| {
        (list.iter(now).collect::<VecDeque<_>>(), list.first(now), list.last(now))
    });
    assert_eq!(all, *model);
    assert_eq!((first, last), (model.front().copied(), model.back().copied()));
}

#[test]
fn a_list_is_what_the_one_of_the_standard_library_is_also_after_a_crash_and_compacted() {
    for seed in 0..5 {
        let (disk, mut rng) = (Simulated::new(), Rng::with_seed(seed));
        let store = open(&disk);
        let list: List<u32> = store.list("list").unwrap();
        let mut model = VecDeque::new();
        let mut me = store.register().unwrap();
        (0..400).for_each(|_| step(&mut rng, list, &mut me, &mut model));
        drop(me);
        store.sync().unwrap();
        let crashed = disk.survivor();
        drop(store);
        offline::compact_on(Arc::new(crashed.clone())).unwrap();
        let read = ReadOnly::open_on(Arc::new(crashed.clone()), options()).unwrap();
        assert_eq!(read.list::<u32>("list").unwrap().iter(&read).collect::<VecDeque<_>>(), model);
        drop(read);
        let store = open(&crashed);
        let list = store.list("list").unwrap();
        let mut me = store.register().unwrap();
        (0..50).for_each(|_| step(&mut rng, list, &mut me, &mut model));
    }
}

#[test]
fn threads_that_change_a_list_in_different_places_leave_what_each_has_put() {
    let store = open(&Simulated::new());
    let list: List<u64> = store.list("list").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let mut me = store.register().unwrap();
                for count in 0..100 {
                    let value = thread << 32 | count;
                    me.run_with(Durability::EVENTUAL, |tx| {
                        if count % 2 == 0 {
                            list.push_back(tx, value)
                        } else {
                            list.push_front(tx, value)
                        }
                    })
                    .unwrap();
                    if count % 4 == 3 {
                        me.run_with(Durability::EVENTUAL, |tx| {
                            let mut cursor = list.cursor(tx);
                            while cursor.value().is_some_and(|found| found != value) {
                                cursor.advance();
                            }
                            cursor.remove()
                        })
                        .unwrap()
                        .expect("only this thread takes it out");
                    }
                }
            });
        }
    });
    let all = store.register().unwrap().read_latest(|now| list.iter(now).collect::<Vec<_>>());
    assert_eq!(all.len(), 4 * 75);
    for thread in 0..4 {
        let own = |value: &&u64| **value >> 32 == thread && value.is_multiple_of(2);
        let pushed: Vec<_> = all.iter().filter(own).collect();
        assert_eq!(pushed.len(), 50);
        assert!(pushed.is_sorted(), "each thread's are in its order");
    }
}

#[test]
fn blobs_of_all_lengths_are_kept_and_freed() {
    let disk = Simulated::new();
    let options = options().with_ring_bytes(256 << 10).with_journal_bytes(8 << 20);
    let store = Store::open_on(Arc::new(disk.clone()), options).unwrap();
    let map: Map<u64, Blob> = store.map("blobs").unwrap();
    let mut me = store.register().unwrap();
    let mut rng = Rng::with_seed(4);
    let lengths = [0, 1, 7, 8, 9, 8175, 8176, 8177, 16_352, 100_000];
    let contents: Vec<Vec<u8>> =
        lengths.iter().map(|length| (0..*length).map(|_| rng.u8(..)).collect()).collect();
    for (key, bytes) in (0..).zip(&contents) {
        me.run(|tx| {
            let blob = Blob::write(tx, bytes)?;
            map.insert(tx, key, blob)
        })
        .unwrap();
    }
    let check = |store: &Store| {
        let mut me = store.register().unwrap();
        for (key, bytes) in (0..).zip(&contents) {
            let read = me.read(|now| map_of(store).get(now, &key).unwrap().read(now));
            assert!(read == *bytes, "{} bytes", bytes.len());
        }
    };
    check(&store);
    check(&open(&disk.survivor()));
    let size = store.stats();
    for _ in 0..300 {
        me.run_with(Durability::EVENTUAL, |tx| {
            let blob = Blob::write(tx, &contents[9])?;
            let old = map.insert(tx, 9, blob)?.expect("it is there");
            // SAFETY: the map does not have it any more, and no code has kept it.
            unsafe { old.free(tx) }
        })
        .unwrap();
    }
    check(&store);
    drop(me);
    assert!(store.stats().transactions > size.transactions);
    // 30 MB were written, into a heap of 64 MiB that keeps 4 MiB back, and no memory was left over.
    let too_large = store
        .register()
        .unwrap()
        .run(|tx| Blob::write(tx, &[1; 300_000]).and_then(|blob| map.insert(tx, 1, blob)));
    assert!(matches!(too_large, Err(Error::TooLarge { .. })), "{too_large:?}");
    store.close().unwrap();
    let refused = offline::compact_on(Arc::new(disk)).unwrap_err();
    assert!(matches!(refused, Error::Schema { name, .. } if name == "own objects"));
}

fn map_of(store: &Store) -> Map<u64, Blob> {
    store.map("blobs").unwrap()
}

#[test]
fn objects_in_maps_are_not_lost_in_a_compaction() {
    let store = Store::in_memory_with(Options::default().with_heap_bytes(64 << 20)).unwrap();
    let map: Map<u64, timestone::Ptr<u64>> = store.map("map").unwrap();
    let mut me = store.register().unwrap();
    // The first one is aborted, and with it the catalog's entry.
    let cancelled = me.run(|tx| {
        tx.alloc(1_u64)?;
        Err::<(), _>(timestone::Stop::Cancel)
    });
    assert!(cancelled.is_err());
    for key in 0..3 {
        me.run(|tx| {
            let object = tx.alloc(key)?;
            map.insert(tx, key, object)
        })
        .unwrap();
    }
    let disk = Simulated::new();
    store.backup_on(&disk).unwrap();
    assert!(matches!(offline::compact_on(Arc::new(disk)), Err(Error::Schema { .. })));
}

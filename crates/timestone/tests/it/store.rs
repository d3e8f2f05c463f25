//! Stores: what is committed is there when they are opened again.

use std::sync::Arc;

use fastrand::Rng;
use timestone::device::{Fault, Faulty, Simulated};
use timestone::{Durability, Error, Map, Options, Stop, Store};

pub fn options() -> Options {
    Options::default()
        .with_journal_bytes(1 << 20)
        .with_heap_bytes(64 << 20)
        .with_ring_bytes(32 << 10)
}

pub fn open(disk: &Simulated) -> Store {
    Store::open_on(Arc::new(disk.clone()), options()).expect("the files are sound")
}

pub fn contents(store: &Store, name: &str) -> Vec<(u64, u64)> {
    // Other threads' commits are read when they are on the disk.
    store.sync().expect("the disk is sound");
    let map: Map<u64, u64> = store.map(name).expect("a map of numbers");
    let mut me = store.register().expect("a thread more");
    let mut all = me.read(|now| {
        let mut all = Vec::new();
        map.for_each(now, |key, value| all.push((key, value)));
        assert_eq!(map.len(now), all.len());
        all
    });
    all.sort_unstable();
    all
}

#[test]
fn a_map_is_what_a_map_of_the_standard_library_is_and_stays_so() {
    let disk = Simulated::new();
    let mut model = std::collections::BTreeMap::new();
    let mut rng = Rng::with_seed(1);
    for _ in 0..6 {
        let store = open(&disk);
        let map: Map<u64, u64> = store.map("numbers").unwrap();
        let mut me = store.register().unwrap();
        for _ in 0..2000 {
            let (key, value) = (rng.u64(0..700), rng.u64(..));
            let (found, wanted) = match rng.u8(0..5) {
                0 | 1 => {
                    let run = me.run_with(Durability::EVENTUAL, |tx| map.insert(tx, key, value));
                    (run.unwrap(), model.insert(key, value))
                }
                2 | 3 => {
                    let run = me.run_with(Durability::EVENTUAL, |tx| map.remove(tx, &key));
                    (run.unwrap(), model.remove(&key))
                }
                _ => (me.read(|now| map.get(now, &key)), model.get(&key).copied()),
            };
            assert_eq!(found, wanted);
        }
        drop(me);
        assert!(
            contents(&store, "numbers").iter().eq(model
                .iter()
                .map(|(k, v)| (*k, *v))
                .collect::<Vec<_>>()
                .iter())
        );
        store.close().unwrap();
    }
}

#[test]
fn a_transaction_over_two_maps_is_there_or_not() {
    let disk = Simulated::new();
    let store = open(&disk);
    let [left, right] = ["left", "right"].map(|name| store.map::<u64, u64>(name).unwrap());
    let mut me = store.register().unwrap();
    for key in 0..20 {
        me.run(|tx| {
            left.insert(tx, key, key)?;
            right.insert(tx, key, key)
        })
        .unwrap();
    }
    let mut rng = Rng::with_seed(2);
    let mut states = std::collections::BTreeSet::new();
    disk.recording().cuts(0, |_, cut| {
        cut.images(&mut rng, 8, false, |left_over| {
            let store = open(&left_over);
            let [left, right] = ["left", "right"].map(|name| contents(&store, name));
            assert_eq!(left, right);
            assert!(left.iter().enumerate().all(|(at, entry)| *entry == (at as u64, at as u64)));
            states.insert(left.len());
        });
    });
    assert_eq!(states.len(), 21, "{states:?}");
}

#[test]
fn what_is_cancelled_or_panics_has_not_been() {
    let store = open(&Simulated::new());
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    let cancelled = me.run(|tx| {
        map.insert(tx, 1, 1)?;
        Err::<(), _>(Stop::Cancel)
    });
    assert!(matches!(cancelled, Err(Error::Cancelled)), "{cancelled:?}");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        me.run(|tx| {
            map.insert(tx, 2, 2)?;
            if map.len(tx) > 0 { panic!("the program's own") } else { Ok(()) }
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(me.read(|now| map.len(now)), 0);
    me.run(|tx| map.insert(tx, 3, 3)).unwrap();
    assert_eq!(contents(&store, "numbers"), [(3, 3)]);
}

#[test]
fn other_threads_read_what_is_on_the_disk_or_the_latest_if_they_say_so() {
    let store = Store::open_on(Arc::new(Simulated::new()), options()).unwrap();
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let (mut me, mut other) = (store.register().unwrap(), store.register().unwrap());
    let durability = Durability::Eventual { window: std::time::Duration::MAX };
    me.run_with(durability, |tx| map.insert(tx, 1, 1)).unwrap();
    assert_eq!(me.read(|now| map.get(now, &1)), Some(1), "its own commit");
    assert_eq!(other.read(|now| map.get(now, &1)), None, "what a crash may take back");
    assert_eq!(other.read_latest(|now| map.get(now, &1)), Some(1));
    store.sync().unwrap();
    assert_eq!(other.read(|now| map.get(now, &1)), Some(1));
}

#[test]
fn a_store_that_is_larger_than_its_addresses_says_so() {
    let disk = Simulated::new();
    let store = open(&disk);
    let map: Map<u64, [u64; 1000]> = store.map("large").unwrap();
    let mut me = store.register().unwrap();
    for key in 0..2000 {
        me.run_with(Durability::EVENTUAL, |tx| map.insert(tx, key, [key; 1000])).unwrap();
    }
    drop(me);
    store.close().unwrap();
    let small = options().with_heap_bytes(8 << 20);
    let error = Store::open_on(Arc::new(disk), small).unwrap_err().to_string();
    assert!(error.contains("wants a larger Options::heap_bytes"), "{error}");
}

#[test]
fn a_name_of_something_else_is_refused() {
    let store = open(&Simulated::new());
    store.map::<u64, u64>("numbers").unwrap();
    let error = store.map::<u64, [u8; 3]>("numbers").unwrap_err().to_string();
    let found = "\"numbers\" is a map from u64 (8 bytes) to u64 (8 bytes) in the store";
    assert!(error.contains(found), "{error}");
    assert!(store.map::<u32, [u8; 3]>("other numbers").is_ok());
}

#[test]
fn a_directory_is_one_stores_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_with(directory.path(), options()).unwrap();
    let again = Store::open_with(directory.path(), options());
    assert!(matches!(again, Err(Error::Locked(_))), "{again:?}");
    store.close().unwrap();
    assert!(Store::open_with(directory.path(), options()).is_ok());
}

#[test]
fn keys_and_values_of_odd_sizes_and_large_ones() {
    let disk = Simulated::new();
    let store = open(&disk);
    let map: Map<[u8; 5], [u16; 4000]> = store.map("large").unwrap();
    let mut me = store.register().unwrap();
    let value = |key: u8| std::array::from_fn(|at| at as u16 * 3 + u16::from(key));
    for key in 0..9 {
        me.run(|tx| map.insert(tx, [key; 5], value(key))).unwrap();
    }
    me.run(|tx| map.update(tx, &[4; 5], |value| value[1000] = 7)).unwrap();
    drop(me);
    drop(store);
    let store = open(&disk);
    let map: Map<[u8; 5], [u16; 4000]> = store.map("large").unwrap();
    let mut me = store.register().unwrap();
    for key in 0..9 {
        let found = me.read(|now| map.get(now, &[key; 5])).expect("the key is there");
        let mut wanted = value(key);
        if key == 4 {
            wanted[1000] = 7;
        }
        assert!(found == wanted, "{key}");
    }
}

#[test]
fn an_object_that_is_too_large_is_refused() {
    let store = open(&Simulated::new());
    let map: Map<u64, [u64; 1100]> = store.map("large").unwrap();
    let mut me = store.register().unwrap();
    let large = me.run(|tx| map.insert(tx, 1, [1; 1100]));
    assert!(matches!(large, Err(Error::TooLarge { .. })), "{large:?}");
    assert_eq!(me.read(|now| map.len(now)), 0);
}

#[test]
fn a_transaction_that_is_too_large_is_refused_and_the_next_is_not() {
    let store = open(&Simulated::new());
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    let large = me.run(|tx| (0..1000).try_for_each(|key| map.insert(tx, key, key).map(|_| ())));
    assert!(matches!(large, Err(Error::TooLarge { .. })), "{large:?}");
    me.run(|tx| (0..50).try_for_each(|key| map.insert(tx, key, key).map(|_| ()))).unwrap();
    assert_eq!(me.read(|now| map.len(now)), 50);
}

#[test]
fn a_full_heap_is_changed_and_emptied_and_takes_more_then() {
    // The smallest possible heap: half of its runs are reserved for slots that threads take in
    // advance.
    let small = options().with_heap_bytes(1);
    let store = Store::open_on(Arc::new(Simulated::new()), small).unwrap();
    let map: Map<u64, [u64; 400]> = store.map("large").unwrap();
    let mut me = store.register().unwrap();
    let mut insert = |key| me.run_with(Durability::EVENTUAL, |tx| map.insert(tx, key, [key; 400]));
    let full = (0..).find_map(|key| insert(key).err().map(|error| (key, error)));
    let (keys, error) = full.expect("the heap is full");
    assert!(matches!(error, Error::Full(_)) && error.to_string().contains("heap_bytes"), "{error}");
    assert!(keys > 10, "{keys}");
    me.run(|tx| map.update(tx, &3, |value| value[0] = 0)).unwrap();
    me.run(|tx| map.remove(tx, &4)).unwrap();
    assert_eq!(me.read(|now| map.len(now)) as u64, keys - 1);
}

#[test]
fn a_full_journal_becomes_an_image_again_and_again() {
    let disk = Simulated::new();
    let store = open(&disk);
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    let count = |round: u64| move |value: &mut u64| *value += round;
    me.run(|tx| (0..50).try_for_each(|key| map.insert(tx, key, 0).map(|_| ()))).unwrap();
    for round in 0..60_000 {
        let durability = Durability::EVENTUAL;
        me.run_with(durability, |tx| map.update(tx, &(round % 50), count(round))).unwrap();
    }
    store.sync().unwrap();
    let stats = store.stats();
    assert!(stats.images >= 2, "{stats:?}");
    assert!(stats.transactions >= 60_001, "{stats:?}");
    drop(me);
    let wanted = contents(&store, "numbers");
    let after_the_crash = open(&disk.survivor());
    assert_eq!(contents(&after_the_crash, "numbers"), wanted);
}

#[test]
fn a_buffered_commit_is_written_at_once_and_flushed_with_the_next() {
    let disk = Simulated::new();
    let window = std::time::Duration::from_secs(1000);
    let store = Store::open_on(Arc::new(disk.clone()), options().with_window(window)).unwrap();
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    let before = disk.calls();
    for key in 0..10 {
        me.run_with(Durability::Buffered, |tx| map.insert(tx, key, key)).unwrap();
    }
    assert_eq!(disk.calls() - before, 10, "each is a write, and no flush");
    let killed = open(&disk.survivor());
    assert_eq!(contents(&killed, "numbers").len(), 10, "what the operating system has");
    // A power cut leaves the first of these commits, whatever their number, and no others.
    let mut rng = Rng::with_seed(1);
    let mut lengths = std::collections::BTreeSet::new();
    disk.recording().cuts(disk.calls(), |_, cut| {
        cut.images(&mut rng, 300, false, |left| {
            let found = contents(&open(&left), "numbers");
            let wanted: Vec<_> = (0..found.len() as u64).map(|key| (key, key)).collect();
            assert_eq!(found, wanted);
            lengths.insert(found.len());
        });
    });
    assert!(lengths.len() > 2, "{lengths:?}");
    me.run(|tx| map.insert(tx, 10, 10)).unwrap();
    disk.recording().cuts(disk.calls(), |_, cut| {
        cut.images(&mut rng, 10, false, |left| {
            assert_eq!(contents(&open(&left), "numbers").len(), 11);
        });
    });
}

#[test]
fn after_a_failed_flush_the_store_is_read_and_not_written() {
    let disk = Arc::new(Faulty::new(Simulated::new()));
    let store = Store::open_on(disk.clone(), options()).unwrap();
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    me.run(|tx| map.insert(tx, 1, 1)).unwrap();
    disk.plan(0, Fault::Flush);
    assert!(me.run(|tx| map.insert(tx, 1, 2)).is_err());
    for _ in 0..3 {
        let poisoned = me.run(|tx| map.insert(tx, 1, 3));
        assert!(matches!(poisoned, Err(Error::Poisoned(_))), "{poisoned:?}");
    }
    let eventual = me.run_with(Durability::EVENTUAL, |tx| map.insert(tx, 1, 4));
    assert!(matches!(eventual, Err(Error::Poisoned(_))), "no thread is told that it commits");
    let mut other = store.register().unwrap();
    assert_eq!(other.read(|now| map.get(now, &1)), Some(1), "what is on the disk");
    drop((me, other));
    assert!(matches!(store.close(), Err(Error::Poisoned(_))));
    let seen = contents(&open(&disk.below().survivor()), "numbers");
    assert!(seen == [(1, 1)] || seen == [(1, 3)] || seen == [(1, 2)], "{seen:?}");
}

#[test]
fn after_a_superblock_that_was_not_flushed_no_commit_succeeds() {
    let disk = Arc::new(Faulty::new(Simulated::new()));
    let store = Store::open_on(disk.clone(), options()).unwrap();
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    // The first flush is the image's.
    disk.plan(1, Fault::Flush);
    assert!(store.checkpoint().is_err());
    assert_eq!(disk.met(), 1);
    let eventual = me.run_with(Durability::EVENTUAL, |tx| map.insert(tx, 1, 1));
    assert!(matches!(eventual, Err(Error::Poisoned(_))), "{eventual:?}");
}

#[test]
fn after_a_write_that_failed_commits_go_on() {
    for fault in [Fault::ShortWrite, Fault::WriteError] {
        let disk = Arc::new(Faulty::new(Simulated::new()));
        let store = Store::open_on(disk.clone(), options()).unwrap();
        let map: Map<u64, u64> = store.map("numbers").unwrap();
        let mut me = store.register().unwrap();
        disk.plan(0, fault);
        let failed = me.run(|tx| map.insert(tx, 1, 1));
        assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
        // It has taken effect in memory, and reaches the disk with the next commit.
        me.run(|tx| map.insert(tx, 2, 2)).unwrap();
        drop(me);
        let after_the_crash = open(&disk.below().survivor());
        assert_eq!(contents(&after_the_crash, "numbers"), [(1, 1), (2, 2)]);
    }
}

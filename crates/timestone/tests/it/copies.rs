//! Backups, and stores that are only read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use timestone::device::{Fault, Faulty, Simulated};
use timestone::{Error, Map, ReadOnly, Store};

use crate::store::{open, options};
use crate::threads::Bank;

fn read(disk: &Simulated) -> ReadOnly {
    ReadOnly::open_on(Arc::new(disk.clone()), options()).expect("the files are sound")
}

#[test]
fn a_backup_beside_transfers_has_whole_ones_and_all_that_were_acknowledged_before() {
    let store = open(&Simulated::new());
    let bank = Bank::open(&store);
    bank.fill(&mut store.register().unwrap());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (store, is_over) = (&store, &is_over);
            scope.spawn(move || {
                let mut me = store.register().unwrap();
                let mut rng = Rng::with_seed(thread);
                for count in 1.. {
                    let durability = timestone::Durability::Durable;
                    bank.transfer(&mut me, thread, count, &mut rng, durability);
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let mut me = store.register().unwrap();
        for _ in 0..10 {
            let before = bank.check(&mut me).unwrap();
            let copy = Simulated::new();
            store.backup_on(&copy).unwrap();
            let copy = open(&copy);
            let made = Bank::open(&copy).check(&mut copy.register().unwrap()).unwrap();
            assert!(made.iter().zip(&before).all(|(made, before)| made >= before));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_backup_is_a_store_of_its_own() {
    let (disk, copy) = (Simulated::new(), Simulated::new());
    let store = open(&disk);
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    for key in 0..100 {
        me.run(|tx| map.insert(tx, key, key)).unwrap();
    }
    store.backup_on(&copy).unwrap();
    me.run(|tx| map.insert(tx, 1, 7)).unwrap();
    let copied = open(&copy);
    let theirs: Map<u64, u64> = copied.map("numbers").unwrap();
    let mut other = copied.register().unwrap();
    assert_eq!(other.read(|now| (theirs.len(now), theirs.get(now, &1))), (100, Some(1)));
    other.run(|tx| theirs.insert(tx, 1, 8)).unwrap();
    drop(other);
    copied.close().unwrap();
    assert_eq!(me.read(|now| map.get(now, &1)), Some(7));
    let error = store.backup_on(&copy).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "where a store is: {error}");
    let copied = read(&copy);
    let theirs: Map<u64, u64> = copied.map("numbers").unwrap();
    assert_eq!(theirs.get(&copied, &1), Some(8));
}

#[test]
fn a_cut_in_a_backup_leaves_all_of_it_or_no_store() {
    let store = open(&Simulated::new());
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    me.run(|tx| (0..50).try_for_each(|key| map.insert(tx, key, key).map(drop))).unwrap();
    let copy = Simulated::new();
    store.backup_on(&copy).unwrap();
    let (mut whole, mut none) = (0, 0);
    copy.recording().cuts(0, |_, cut| {
        cut.images(&mut Rng::with_seed(1), 20, false, |left| {
            match ReadOnly::open_on(Arc::new(left), options()) {
                Ok(copied) => {
                    let map: Map<u64, u64> = copied.map("numbers").unwrap();
                    assert_eq!(map.len(&copied), 50);
                    whole += 1;
                }
                Err(Error::Io { .. } | Error::Corrupted { .. }) => none += 1,
                Err(error) => panic!("{error}"),
            }
        });
    });
    assert!(whole > 3 && none > 10, "{whole} {none}");
}

#[test]
fn a_backup_that_fails_leaves_the_store_as_it_was() {
    for fault in [Fault::Full, Fault::Flush, Fault::WriteError] {
        let store = open(&Simulated::new());
        let map: Map<u64, u64> = store.map("numbers").unwrap();
        let mut me = store.register().unwrap();
        me.run(|tx| map.insert(tx, 1, 1)).unwrap();
        let copy = Faulty::new(Simulated::new());
        copy.plan(0, fault);
        assert!(store.backup_on(&copy).is_err());
        me.run(|tx| map.insert(tx, 2, 2)).unwrap();
        store.checkpoint().unwrap();
        store.backup_on(&Simulated::new()).unwrap();
    }
}

#[test]
fn a_store_is_read_as_a_crash_has_left_it_and_nothing_is_written() {
    let disk = Simulated::new();
    let mut wanted = BTreeMap::new();
    let store = open(&disk);
    let map: Map<u64, [u64; 3]> = store.map("values").unwrap();
    let mut me = store.register().unwrap();
    for key in 0..300 {
        me.run(|tx| map.insert(tx, key, [key; 3])).unwrap();
        wanted.insert(key, [key; 3]);
        if key % 100 == 50 {
            store.checkpoint().unwrap();
        }
    }
    for key in (0..300).step_by(3) {
        me.run(|tx| map.remove(tx, &key)).unwrap();
        wanted.remove(&key);
    }
    let left = disk.survivor();
    for _ in 0..2 {
        let store = read(&left);
        let map: Map<u64, [u64; 3]> = store.map("values").unwrap();
        let mut found = BTreeMap::new();
        map.for_each(&store, |key, value| _ = found.insert(key, value));
        assert_eq!(found, wanted);
        assert_eq!(map.get(&store, &4), Some([4; 3]));
        assert_eq!(map.get(&store, &3), None);
        let other = store.map::<u64, u64>("others").unwrap_err().to_string();
        assert!(other.contains("is nothing in the store"), "{other}");
        assert!(matches!(store.map::<u64, u64>("values"), Err(Error::Schema { .. })));
    }
    assert_eq!(left.calls(), 0, "nothing is written");
}

#[test]
fn several_read_a_directory_and_nobody_writes_it_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(ReadOnly::open(directory.path()), Err(Error::Io { .. })), "no store");
    let store = Store::open_with(directory.path(), options()).unwrap();
    store.map::<u64, u64>("numbers").unwrap();
    assert!(matches!(ReadOnly::open(directory.path()), Err(Error::Locked(_))));
    store.close().unwrap();
    let one = ReadOnly::open(directory.path()).unwrap();
    let other = ReadOnly::open(directory.path()).unwrap();
    assert_eq!(one.horizon(), other.horizon());
    let writer = Store::open_with(directory.path(), options());
    assert!(matches!(writer, Err(Error::Locked(_))), "{writer:?}");
    drop((one, other));
    assert!(Store::open_with(directory.path(), options()).is_ok());
}

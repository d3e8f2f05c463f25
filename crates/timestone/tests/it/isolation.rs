//! What transactions see of each other, and which of their changes survive a crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;
use manycore_history::history::Clock;
use manycore_history::snapshot::{self, Anomaly, check, check_crash};
use parking_lot::Mutex;
use timestone::device::Simulated;
use timestone::{Durability, Isolation, Map, Member, Store, Terms};

use crate::store::{open, options};

const STRICT: snapshot::Isolation = snapshot::Isolation::STRICT_SERIALIZABLE;
const OBJECTS: u64 = 6;
const THREADS: u32 = 4;

/// One of two doctors goes off call if the other is on call: the well-known write skew.
fn doctors_on_call(isolation: Isolation) -> u64 {
    let store = open(&Simulated::new());
    let on_call: Map<u64, u64> = store.map("on call").unwrap();
    let (mut one, mut other) = (store.register().unwrap(), store.register().unwrap());
    one.run(|tx| (0..2).try_for_each(|doctor| on_call.insert(tx, doctor, 1).map(drop))).unwrap();
    let mut has_other_gone = false;
    one.run_with(isolation, |tx| {
        let both = (0..2).filter_map(|doctor| on_call.get(tx, &doctor)).sum::<u64>() == 2;
        if !has_other_gone {
            has_other_gone = true;
            other
                .run_with(isolation, |tx| {
                    let both =
                        (0..2).filter_map(|doctor| on_call.get(tx, &doctor)).sum::<u64>() == 2;
                    if both { on_call.insert(tx, 1, 0).map(drop) } else { Ok(()) }
                })
                .unwrap();
        }
        if both { on_call.insert(tx, 0, 0).map(drop) } else { Ok(()) }
    })
    .unwrap();
    one.read(|now| (0..2).filter_map(|doctor| on_call.get(now, &doctor)).sum())
}

#[test]
fn a_write_skew_happens_under_snapshots_and_not_in_a_serial_order() {
    assert_eq!(doctors_on_call(Isolation::Snapshot), 0);
    assert_eq!(doctors_on_call(Isolation::Serializable), 1);
    assert_eq!(doctors_on_call(Isolation::Linearizable), 1);
}

/// Each of two transactions inserts a key if the other's is not there.
fn inserted_by_two(isolation: Isolation) -> usize {
    let store = open(&Simulated::new());
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let (mut one, mut other) = (store.register().unwrap(), store.register().unwrap());
    let mut has_other_gone = false;
    one.run_with(isolation, |tx| {
        let is_free = map.get(tx, &2).is_none();
        if !has_other_gone {
            has_other_gone = true;
            other
                .run_with(isolation, |tx| match map.get(tx, &1) {
                    None => map.insert(tx, 2, 2).map(drop),
                    Some(_) => Ok(()),
                })
                .unwrap();
        }
        if is_free { map.insert(tx, 1, 1).map(drop) } else { Ok(()) }
    })
    .unwrap();
    one.read(|now| map.len(now))
}

#[test]
fn a_key_that_was_not_there_is_not_there_at_the_commit_either() {
    assert_eq!(inserted_by_two(Isolation::Serializable), 1);
    assert_eq!(inserted_by_two(Isolation::Linearizable), 1);
}

#[test]
fn what_a_visit_of_all_keys_has_not_seen_does_not_come_before_the_commit() {
    for (isolation, wanted) in [(Isolation::Snapshot, 1), (Isolation::Serializable, 2)] {
        let store = open(&Simulated::new());
        let map: Map<u64, u64> = store.map("numbers").unwrap();
        let counts: Map<u64, u64> = store.map("counts").unwrap();
        let (mut one, mut other) = (store.register().unwrap(), store.register().unwrap());
        one.run(|tx| map.insert(tx, 1, 1)).unwrap();
        let mut has_other_gone = false;
        one.run_with(isolation, |tx| {
            let count = map.len(tx) as u64;
            if !has_other_gone {
                has_other_gone = true;
                other.run(|tx| map.insert(tx, 2, 2)).unwrap();
            }
            counts.insert(tx, 0, count)
        })
        .unwrap();
        assert_eq!(one.read(|now| counts.get(now, &0)), Some(wanted), "{isolation:?}");
    }
}

/// All threads' transactions; for each acknowledged one, the number of the disk's calls when it had
/// ended.
struct Recorded {
    history: Vec<snapshot::Transaction>,
    calls: Vec<(u64, usize)>,
}

/// Random transactions by all threads, images beside them.
fn record(disk: &Simulated, store: &Store, terms: Terms, each: u64) -> Recorded {
    let map: Map<u64, u64> = store.map("objects").unwrap();
    let mut me = store.register().unwrap();
    me.run(|tx| (0..OBJECTS).try_for_each(|object| map.insert(tx, object, 0).map(drop))).unwrap();
    let (clock, version) = (Clock::new(), AtomicU64::new(1));
    let recorded = Mutex::new(Recorded { history: Vec::new(), calls: Vec::new() });
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (clock, version, recorded) = (&clock, &version, &recorded);
                scope.spawn(move || {
                    let mut me = store.register().unwrap();
                    let mut rng = Rng::with_seed(u64::from(thread));
                    for _ in 0..each {
                        let one = transact(&mut me, map, (clock, thread), version, &mut rng, terms);
                        let calls = (one.ended, disk.calls());
                        let mut recorded = recorded.lock();
                        recorded.history.push(one);
                        recorded.calls.push(calls);
                    }
                })
            })
            .collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            store.checkpoint().unwrap();
            std::thread::yield_now();
        }
    });
    recorded.into_inner()
}

/// Reads some objects and writes some, with versions of its own.
fn transact(
    me: &mut Member<'_>,
    map: Map<u64, u64>,
    (clock, thread): (&Clock, u32),
    version: &AtomicU64,
    rng: &mut Rng,
    terms: Terms,
) -> snapshot::Transaction {
    let is_writer = rng.u8(0..4) != 0;
    let mut objects: Vec<_> = (0..OBJECTS).collect();
    rng.shuffle(&mut objects);
    let (reads, writes) = (rng.usize(1..4), if is_writer { rng.usize(1..3) } else { 0 });
    let began = clock.moment();
    let seen = me
        .run_with(terms, |tx| {
            let mut seen = snapshot::Transaction::begin(clock, thread);
            for object in &objects[..reads] {
                seen.read(*object, map.get(tx, object).expect("the object is there"));
            }
            for object in objects.iter().rev().take(writes) {
                let after = version.fetch_add(1, Ordering::Relaxed);
                let before = map.insert(tx, *object, after)?.expect("the object is there");
                seen.write(*object, before, after);
            }
            Ok(seen)
        })
        .unwrap();
    let mut seen = seen.commit(clock);
    seen.began = began;
    seen
}

/// Checks the states that cuts leave of a history, at about `most` calls of the disk.
fn check_cuts(disk: &Simulated, recorded: &Recorded, isolation: snapshot::Isolation, most: usize) {
    let Recorded { history, calls } = recorded;
    let mut rng = Rng::with_seed(1);
    let one_in = disk.calls().div_ceil(most);
    let (mut checked, mut visited) = (0, 0);
    disk.recording().cuts(0, |cut_at, cut| {
        visited += 1;
        if visited % one_in != 0 {
            return;
        }
        let acknowledged = |transaction: &snapshot::Transaction| {
            let at = calls.iter().find(|(ended, _)| *ended == transaction.ended);
            at.is_some_and(|(_, calls)| *calls <= cut_at)
        };
        cut.images(&mut rng, 2, false, |left| {
            let store = open(&left);
            let map: Map<u64, u64> = store.map("objects").unwrap();
            let mut me = store.register().unwrap();
            let left: Vec<_> = me.read(|now| {
                (0..OBJECTS).map(|object| (object, map.get(now, &object).unwrap_or(0))).collect()
            });
            if let Err(violation) = check_crash(history, &left, acknowledged, isolation) {
                panic!("a cut after {cut_at} calls: {violation}");
            }
            checked += 1;
        });
    });
    assert!(checked > most / 2, "{checked}");
}

#[test]
fn histories_are_as_their_isolation_says_also_over_crashes() {
    // A transaction may not see another thread's commit of a moment ago, unless it also asks for
    // the order of time.
    let serial = snapshot::Isolation { strict: false, serializable: true };
    for (isolation, promise) in [
        (Isolation::Snapshot, snapshot::Isolation::RELAXED),
        (Isolation::Serializable, serial),
        (Isolation::Linearizable, STRICT),
    ] {
        let disk = Simulated::new();
        let store = open(&disk);
        let recorded = record(&disk, &store, isolation.into(), 120);
        drop(store);
        let checked = check(&recorded.history, promise);
        assert!(checked.is_ok(), "{isolation:?}: {}", checked.unwrap_err());
        check_cuts(&disk, &recorded, promise, 60);
    }
}

#[test]
fn linearizable_transactions_see_what_has_returned_also_if_it_is_not_on_the_disk() {
    let disk = Simulated::new();
    let store = Store::open_on(Arc::new(disk.clone()), options()).unwrap();
    let terms = (Durability::EVENTUAL, Isolation::Linearizable);
    let recorded = record(&disk, &store, terms.into(), 2000);
    let checked = check(&recorded.history, STRICT);
    assert!(checked.is_ok(), "{}", checked.unwrap_err());
}

/// The histories are such that the tests above could have failed.
#[test]
fn snapshots_beside_each_other_are_not_serializable() {
    for _ in 0..20 {
        let disk = Simulated::new();
        let store = open(&disk);
        let terms = (Durability::EVENTUAL, Isolation::Snapshot);
        let recorded = record(&disk, &store, terms.into(), 2000);
        let found = check(&recorded.history, STRICT).err().map(|violation| violation.anomaly);
        if found == Some(Anomaly::WriteSkew) {
            return;
        }
    }
    panic!("no write skew in 20 histories");
}

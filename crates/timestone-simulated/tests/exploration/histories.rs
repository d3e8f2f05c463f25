//! What transactions see of each other, and which of their changes survive a cut.

use std::cell::RefCell;
use std::sync::Arc;

use fastrand::Rng;
use manycore_history::history::Clock;
use manycore_history::run::{Explored, Threads};
use manycore_history::snapshot::{self, check, check_crash};
use manycore_sim::explore::Exploration;
use timestone_simulated::device::Simulated;
use timestone_simulated::{Durability, Isolation, Map, Member, Options, ReadOnly, Store};

use crate::explore;
use crate::host::Host;

pub const OBJECTS: u64 = 4;

pub fn options() -> Options {
    let options = Options::default().with_journal_bytes(1 << 20).with_heap_bytes(8 << 20);
    options.with_ring_bytes(4 << 10)
}

fn open(disk: &Simulated) -> Store {
    Store::open_on(Arc::new(Host(disk.clone())), options()).expect("a cut is no damage")
}

/// A disk with a store of some objects, which was closed.
pub fn filled() -> Simulated {
    let filled = RefCell::new(Simulated::new());
    Exploration::default().schedules(1).steps_max(1 << 24).check(|| {
        fastrand::seed(1);
        let disk = Explored.aside(Simulated::new);
        let store = open(&disk);
        let map: Map<u64, u64> = store.map("objects").unwrap();
        let mut me = store.register().unwrap();
        me.run(|tx| (0..OBJECTS).try_for_each(|object| map.insert(tx, object, 0).map(drop)))
            .unwrap();
        // The machine is on for a while, so that it is earlier by its clock after the next start.
        (0..10_000).for_each(|_| _ = store.now());
        me.run(|tx| map.insert(tx, 0, 0).map(drop)).unwrap();
        drop(me);
        store.close().unwrap();
        Explored.aside(|| filled.replace(disk.survivor()));
    });
    filled.into_inner()
}

/// A thread's transactions; for each acknowledged one, the number of the disk's calls when it had
/// ended.
type Log = Vec<(snapshot::Transaction, Option<usize>)>;

/// Reads some objects and writes some, with versions of its own.
fn transact(
    me: &mut Member<'_>,
    map: Map<u64, u64>,
    (clock, thread, round): (&Clock, u32, u64),
    rng: &mut Rng,
    (isolation, durability): (Isolation, Durability),
) -> snapshot::Transaction {
    let mut objects: Vec<_> = (0..OBJECTS).collect();
    rng.shuffle(&mut objects);
    let (reads, writes) = (rng.usize(1..3), rng.usize(0..3));
    let began = clock.moment();
    let mut attempts = 0;
    let seen = me
        .run_with((durability, isolation), |tx| {
            let mut seen = snapshot::Transaction::begin(clock, thread);
            for object in &objects[..reads] {
                seen.read(*object, map.get(tx, object).expect("the object is there"));
            }
            attempts += 1;
            for object in objects.iter().rev().take(writes) {
                let after = 1 + object + 10 * (round + 10 * (attempts + 100 * u64::from(thread)));
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

/// Threads run transactions, and one of them writes an image in between.
fn record(disk: &Simulated, threads: u32, isolation: Isolation, seed: u64) -> Log {
    let store = open(disk);
    let map: Map<u64, u64> = store.map("objects").unwrap();
    let clock = Clock::new();
    let logs = Explored.parallel(threads, |thread| {
        let mut me = store.register().unwrap();
        let mut rng = Rng::with_seed(seed * 10 + u64::from(thread));
        let mut log = Vec::new();
        for round in 0..2 {
            let durability = match rng.u8(..4) {
                0 => Durability::EVENTUAL,
                1 => Durability::Buffered,
                _ => Durability::Durable,
            };
            let terms = (isolation, durability);
            let one = transact(&mut me, map, (&clock, thread, round), &mut rng, terms);
            let is_acknowledged = durability == Durability::Durable;
            log.push((one, is_acknowledged.then(|| disk.calls())));
            if thread == 0 && round == 0 {
                store.checkpoint().unwrap();
            }
        }
        log
    });
    drop(store);
    logs.concat()
}

/// Checks what a cut at each of the calls leaves.
fn check_cuts(disk: &Simulated, log: &Log, isolation: snapshot::Isolation, rng: &mut Rng) {
    let history: Vec<_> = log.iter().map(|(transaction, _)| transaction.clone()).collect();
    disk.recording().cuts(0, |cut_at, cut| {
        let acknowledged = |transaction: &snapshot::Transaction| {
            let found = log.iter().find(|(one, _)| one.ended == transaction.ended);
            found.is_some_and(|(_, calls)| calls.is_some_and(|calls| calls <= cut_at))
        };
        cut.images(rng, 1, false, |left| {
            // Without threads: the simulation has ended.
            let store = ReadOnly::open_on(Arc::new(left), options()).expect("a cut is no damage");
            let map: Map<u64, u64> = store.map("objects").unwrap();
            let value = |object| (object, map.get(&store, &object).unwrap_or(0));
            let left: Vec<_> = (0..OBJECTS).map(value).collect();
            if let Err(violation) = check_crash(&history, &left, acknowledged, isolation) {
                panic!("a cut after {cut_at} calls: {violation}");
            }
        });
    });
}

fn histories(isolation: Isolation, promise: snapshot::Isolation) {
    let before = filled();
    for seed in 0..2 {
        let explored = explore().check(|| {
            fastrand::seed(seed);
            let disk = Explored.aside(|| before.survivor());
            let log = record(&disk, 2 + (seed % 2) as u32, isolation, seed);
            let history: Vec<_> = log.iter().map(|(transaction, _)| transaction.clone()).collect();
            if let Err(violation) = Explored.aside(|| check(&history, promise)) {
                panic!("no order explains it: {violation}");
            }
            Explored.aside(|| check_cuts(&disk, &log, promise, &mut Rng::with_seed(seed)));
        });
        println!("{explored:?}");
    }
}

#[test]
fn snapshots() {
    histories(Isolation::Snapshot, snapshot::Isolation::RELAXED);
}

#[test]
fn serializable() {
    let serial = snapshot::Isolation { strict: false, serializable: true };
    histories(Isolation::Serializable, serial);
}

#[test]
fn linearizable() {
    histories(Isolation::Linearizable, snapshot::Isolation::STRICT_SERIALIZABLE);
}

//! Operations: the journal has calls, and recovery runs them again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fastrand::Rng;
use timestone::device::{Simulated, Storage};
use timestone::journal::record::Entry;
use timestone::volume::{Recovered, Source, Target};
use timestone::{
    Durability, Error, Isolation, List, Map, Member, Operation, Operations, OrderedMap, Ptr, Queue,
    ReadOnly, Session, Stop, Store, Transaction, inspect,
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::gated::Gated;
use crate::store::options;

/// Keys that [`mix`] uses.
const KEYS: u64 = 40;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Node {
    value: u64,
    next: Ptr<Node>,
}

/// Something with each of the structures, by two numbers.
fn mix(tx: &mut Transaction<'_, '_>, &[what, key]: &[u64; 2]) -> Result<u64, Stop> {
    let map: Map<u64, u64> = tx.map("map")?;
    let tree: OrderedMap<u64, u64> = tx.ordered_map("tree")?;
    let queue: Queue<u64> = tx.queue("queue")?;
    let list: List<u64> = tx.list("list")?;
    let head: Ptr<Ptr<Node>> = tx.root("head")?;
    let found = map.get(tx, &key).unwrap_or(0);
    match what % 6 {
        // A chain of moves through all of them, so each result depends on the others.
        0 => _ = tree.insert(tx, key, found + 1)?,
        1 => {
            let moved = tree.remove(tx, &key)?.unwrap_or(what);
            queue.push(tx, moved)?;
        }
        2 => {
            let moved = queue.pop(tx)?.unwrap_or(key);
            map.insert(tx, moved % KEYS, moved)?;
            list.push_back(tx, moved)?;
        }
        3 => {
            let first = list.pop_front(tx)?.unwrap_or(0);
            let next = *tx.deref(head);
            let node = tx.alloc(Node { value: first, next })?;
            if key % 2 == 0 {
                tx.lock(node)?.value += key;
            }
            let value = tx.deref(node).value;
            map.insert(tx, key, value)?;
            *tx.lock(head)? = node;
        }
        4 => {
            let first = *tx.deref(head);
            if !first.is_null() {
                let Node { value, next } = *tx.deref(first);
                *tx.lock(head)? = next;
                // SAFETY: no object leads to this one any more, and the test forgets it.
                unsafe { tx.free(first) }?;
                map.insert(tx, key, value + 1)?;
            }
        }
        _ => {
            let all = tree.range(tx, ..).fold(0_u64, |sum, (_, value)| sum.wrapping_add(value));
            let noise = tx.input(|| fastrand::u32(..))?;
            map.insert(tx, key, all ^ u64::from(noise))?;
        }
    }
    Ok(found)
}

const MIX: Operation<[u64; 2], u64> = Operation::new("mix", 1, mix);

/// Adds to all values of a map.
fn add_to_all(tx: &mut Transaction<'_, '_>, by: &u64) -> Result<(), Stop> {
    let map: Map<u64, u64> = tx.map("map")?;
    (0..KEYS).try_for_each(|key| map.update(tx, &key, |value| *value += by).map(|_| ()))
}

const ADD: Operation<u64> = Operation::new("add to all", 1, add_to_all);

const ALL: Operations = &[&MIX, &ADD];

fn open_with(storage: impl Storage + 'static, operations: Operations) -> timestone::Result<Store> {
    Store::open_on(Arc::new(storage), options().with_operations(operations))
}

/// A store with the structures, in an image.
fn filled(disk: &Simulated) -> Store {
    let store = open_with(disk.clone(), ALL).unwrap();
    let map: Map<u64, u64> = store.map("map").unwrap();
    store.ordered_map::<u64, u64>("tree").unwrap();
    store.queue::<u64>("queue").unwrap();
    store.list::<u64>("list").unwrap();
    store.root::<Ptr<Node>>("head").unwrap();
    let mut me = store.register().unwrap();
    me.run(|tx| (0..KEYS).try_for_each(|key| map.insert(tx, key, key).map(|_| ()))).unwrap();
    drop(me);
    store.checkpoint().unwrap();
    store
}

/// One call, chosen at random.
fn call(me: &mut Member<'_>, rng: &mut Rng, how: Durability) {
    if rng.u8(..4) == 0 {
        me.call_with(how, &ADD, &rng.u64(..1000)).unwrap();
    } else {
        me.call_with(how, &MIX, &[rng.u64(..1000), rng.u64(..KEYS)]).unwrap();
    }
}

/// The words of all objects by their places.
#[derive(Debug, Default, PartialEq)]
struct Objects(BTreeMap<u64, Vec<u8>>);

impl Target for Objects {
    fn apply(&mut self, _: Source<'_>, entry: Entry<'_>) -> Result<(), String> {
        self.0.insert(entry.place, entry.words.to_vec());
        Ok(())
    }
}

/// Those of a store that was closed.
fn objects(disk: &Simulated) -> Objects {
    let mut objects = Objects::default();
    let read = Recovered::read_existing(disk, &mut objects).unwrap();
    assert!(read.is_clean());
    objects
}

/// Opens and closes what a crash has left.
fn recovered(disk: &Simulated) -> (Objects, u64) {
    let left = disk.survivor();
    let store = open_with(left.clone(), ALL).expect("the operations do again what they did");
    let transactions = store.stats().recovered;
    store.close().unwrap();
    (objects(&left), transactions)
}

#[test]
fn what_runs_again_writes_the_same_bytes_in_the_same_places() {
    for seed in 0..4 {
        let disk = Simulated::new();
        let store = filled(&disk);
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|thread| {
                    let store = &store;
                    scope.spawn(move || {
                        let mut me = store.register().unwrap();
                        let mut rng = Rng::with_seed(seed * 10 + thread);
                        for _ in 0..300 {
                            call(&mut me, &mut rng, Durability::EVENTUAL);
                        }
                    })
                })
                .collect();
            if seed % 2 == 0 {
                scope.spawn(|| {
                    while !is_done.load(Ordering::Relaxed) {
                        store.checkpoint().unwrap();
                        std::thread::sleep(std::time::Duration::from_millis(2));
                    }
                });
            }
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            is_done.store(true, Ordering::Relaxed);
        });
        store.sync().unwrap();
        let stats = store.stats();
        assert!(stats.operations > 50, "{stats:?}");
        let (again, transactions) = recovered(&disk);
        assert!(seed % 2 == 0 || transactions > 1000, "{transactions}");
        store.close().unwrap();
        let wanted = objects(&disk);
        assert_eq!(again.0.len(), wanted.0.len());
        for (place, words) in &wanted.0 {
            assert_eq!(again.0.get(place), Some(words), "the object at {place}");
        }
    }
}

/// Calls by one thread, each acknowledged, with images and reopenings between them. After a cut the
/// state is that after one of the calls, and not before the last that was acknowledged.
#[test]
fn a_cut_at_any_call_leaves_what_some_calls_have_done() {
    let disk = Simulated::new();
    let mut rng = Rng::with_seed(3);
    let mut store = filled(&disk);
    let filled = disk.calls();
    let map_of = |store: &Store| {
        let map: Map<u64, u64> = store.map("map").unwrap();
        let mut all = BTreeMap::new();
        let visit = |key, value| _ = all.insert(key, value);
        store.register().unwrap().read_latest(|now| map.for_each(now, visit));
        all
    };
    let mut states = vec![map_of(&store)];
    let (mut acknowledged, mut calls) = (vec![(filled, 0)], 0);
    for round in 0..60 {
        let mut me = store.register().unwrap();
        // Some that no thread waits for, so that frames have several.
        for last in [false, true] {
            let how = if last { Durability::Durable } else { Durability::EVENTUAL };
            call(&mut me, &mut rng, how);
            drop(me);
            states.push(map_of(&store));
            me = store.register().unwrap();
        }
        acknowledged.push((disk.calls(), states.len() - 1));
        drop(me);
        calls += store.stats().operations;
        match round % 12 {
            5 => store.checkpoint().unwrap(),
            11 => {
                store.close().unwrap();
                store = open_with(disk.clone(), ALL).unwrap();
            }
            _ => {}
        }
    }
    let (mut images, mut replayed) = (0, 0);
    disk.recording().cuts(filled, |calls, cut| {
        let before = acknowledged.iter().take_while(|(at, _)| *at <= calls);
        let promised = before.last().expect("the store was there").1;
        cut.images(&mut rng, 4, false, |left| {
            images += 1;
            let store = open_with(left.clone(), ALL).expect("a crash is no damage");
            replayed += store.stats().recovered;
            let found = map_of(&store);
            let is_one = states[promised..].contains(&found);
            assert!(is_one, "after {calls} calls, and {promised} were acknowledged: {found:?}");
        });
    });
    assert!(images > 200 && replayed > 500 && calls > 50, "{images} {replayed} {calls}");
}

#[test]
fn while_an_image_is_written_frames_have_what_was_written_and_no_calls() {
    let disk = Gated::new(|name| name.starts_with("image"));
    filled(&disk.disk).close().unwrap();
    let store = open_with(disk.clone(), ALL).unwrap();
    let mut me = store.register().unwrap();
    let mut add = |by: u64| me.call(&ADD, &by).unwrap();
    add(1);
    let before = store.stats();
    assert_eq!(before.operations, 1);
    std::thread::scope(|scope| {
        let shut = disk.shut();
        let image = scope.spawn(|| store.checkpoint());
        disk.wait_for_flush();
        (0..20).for_each(|_| add(1));
        let beside = store.stats();
        assert_eq!((beside.operations, beside.transactions), (1, before.transactions + 20));
        drop(shut);
        image.join().unwrap().unwrap();
    });
    (0..5).for_each(|_| add(1));
    assert_eq!(store.stats().operations, 6);
    let (again, transactions) = recovered(&disk.disk);
    assert_eq!(transactions, 25);
    drop(me);
    store.close().unwrap();
    assert_eq!(again, objects(&disk.disk));
}

#[test]
fn the_shorter_record_is_taken_of_transactions_that_are_serializable() {
    let store = filled(&Simulated::new());
    let mut me = store.register().unwrap();
    let mut calls = |terms: Isolation, what: [u64; 2]| {
        let before = store.stats().operations;
        me.call_with(terms, &MIX, &what).unwrap();
        me.call_with(terms, &ADD, &1).unwrap();
        store.stats().operations - before
    };
    // The first call writes one word, which is shorter than the call.
    assert_eq!(calls(Isolation::Serializable, [4, 1]), 1);
    assert_eq!(calls(Isolation::Linearizable, [4, 1]), 1);
    assert_eq!(calls(Isolation::Snapshot, [4, 1]), 0, "it could not run again");
}

#[test]
fn a_program_that_does_not_know_an_operation_is_told_which() {
    const NEXT: Operation<u64> =
        Operation::new("add to all", 2, |tx, by| add_to_all(tx, &(by * 2)));
    const NEXT_ALL: Operations = &[&MIX, &NEXT];
    let disk = Simulated::new();
    let store = filled(&disk);
    let mut me = store.register().unwrap();
    for _ in 0..3 {
        me.call(&ADD, &5).unwrap();
    }
    let left = disk.survivor();
    for operations in [&[], NEXT_ALL] {
        match open_with(left.clone(), operations) {
            Err(Error::UnknownOperation { name, version, records }) => {
                assert_eq!((&*name, version, records), ("add to all", 1, 3));
            }
            other => panic!("{other:?}"),
        }
    }
    let calls = left.calls();
    assert!(ReadOnly::open_on(Arc::new(left.clone()), options()).is_err());
    let with = options().with_operations(ALL);
    let read = ReadOnly::open_on(Arc::new(left.clone()), with).unwrap();
    let map: Map<u64, u64> = read.map("map").unwrap();
    assert_eq!(map.get(&read, &1), Some(16));
    drop(read);
    assert_eq!(left.calls(), calls, "nothing is written");
    // The old program closes the store, and the new one opens it.
    open_with(left.clone(), ALL).unwrap().close().unwrap();
    let store = open_with(left.clone(), NEXT_ALL).unwrap();
    let mut me = store.register().unwrap();
    me.call(&NEXT, &5).unwrap();
    assert!(matches!(me.call(&ADD, &5), Err(Error::UnknownOperation { records: 0, .. })));
    let left = left.survivor();
    let store = open_with(left, &[&ADD, &MIX, &NEXT]).unwrap();
    let map: Map<u64, u64> = store.map("map").unwrap();
    assert_eq!(store.register().unwrap().read(|now| map.get(now, &1)), Some(26));
}

#[test]
fn two_operations_of_the_same_name_and_version_are_refused() {
    const OTHER: Operation<u64> = Operation::new("add to all", 1, add_to_all);
    let refused = open_with(Simulated::new(), &[&ADD, &MIX, &OTHER]);
    assert!(matches!(refused, Err(Error::Schema { .. })), "{refused:?}");
}

/// A clock, read otherwise than by [`Transaction::input`].
static CLOCK: AtomicU64 = AtomicU64::new(0);

/// What [`unruly`] does otherwise than in the first place.
static TROUBLE: AtomicU64 = AtomicU64::new(0);

fn unruly(tx: &mut Transaction<'_, '_>, _: &u64) -> Result<(), Stop> {
    let map: Map<u64, u64> = tx.map("map")?;
    let is = |trouble| TROUBLE.load(Ordering::Relaxed) == trouble;
    let now = CLOCK.fetch_add(u64::from(is(1)), Ordering::Relaxed);
    for key in 0..KEYS {
        map.insert(tx, key, now)?;
    }
    map.insert(tx, 1000, now)?;
    if is(2) {
        tx.input(|| 1_u64)?;
    }
    if is(3) {
        map.insert(tx, 1001, 1)?;
    }
    if is(4) {
        return Err(Stop::Cancel);
    }
    if is(5) {
        panic!("the operation's own");
    }
    Ok(())
}

const UNRULY: Operation<u64> = Operation::new("unruly", 1, unruly);

#[test]
fn an_operation_that_does_not_do_the_same_again_is_an_error_and_nothing_is_written() {
    let disk = Simulated::new();
    filled(&disk).close().unwrap();
    let store = open_with(disk.clone(), &[&UNRULY]).unwrap();
    let mut me = store.register().unwrap();
    CLOCK.store(7, Ordering::Relaxed);
    me.call(&UNRULY, &1).unwrap();
    assert_eq!(store.stats().operations, 1);
    let left = disk.survivor();
    let calls = left.calls();
    let says = ["something else", "more inputs", "more objects", "before its end", "panics"];
    for (trouble, says) in (1..).zip(says) {
        // The clock goes on, and each of the others is the operation's own.
        CLOCK.store(if trouble == 1 { 8 } else { 7 }, Ordering::Relaxed);
        TROUBLE.store(trouble, Ordering::Relaxed);
        match open_with(left.clone(), &[&UNRULY]) {
            Err(Error::ReplayDiffers { name, what, .. }) => {
                assert_eq!(name, "unruly");
                assert!(what.contains(says), "{what:?}, and not {says:?}");
            }
            other => panic!("{other:?}, and not {says:?}"),
        }
        assert_eq!(left.calls(), calls, "nothing is written");
    }
    CLOCK.store(7, Ordering::Relaxed);
    TROUBLE.store(0, Ordering::Relaxed);
    open_with(left, &[&UNRULY]).expect("it does the same again");
}

#[test]
fn arguments_are_slices_too() {
    fn insert_all(tx: &mut Transaction<'_, '_>, keys: &[u32]) -> Result<(), Stop> {
        let map: Map<u64, u64> = tx.map("map")?;
        keys.iter().try_for_each(|key| map.insert(tx, u64::from(*key), 1).map(|_| ()))
    }
    const INSERT: Operation<[u32]> = Operation::new("insert all", 1, insert_all);
    let disk = Simulated::new();
    filled(&disk).close().unwrap();
    let store = open_with(disk.clone(), &[&INSERT]).unwrap();
    let mut me = store.register().unwrap();
    let keys: Vec<u32> = (100..121).collect();
    me.call(&INSERT, &*keys).unwrap();
    me.call(&INSERT, &[]).unwrap();
    assert_eq!(store.stats().operations, 1);
    let again = open_with(disk.survivor(), &[&INSERT]).unwrap();
    let map: Map<u64, u64> = again.map("map").unwrap();
    assert_eq!(again.register().unwrap().read(|now| map.len(now)), 40 + 21);
}

#[test]
fn those_who_look_at_the_files_are_told_of_calls() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("store"), directory.path().join("copy"));
    let store = Store::open_with(&path, options().with_operations(ALL)).unwrap();
    let map: Map<u64, u64> = store.map("map").unwrap();
    let mut me = store.register().unwrap();
    me.run(|tx| (0..KEYS).try_for_each(|key| map.insert(tx, key, key).map(|_| ()))).unwrap();
    me.call(&ADD, &1).unwrap();
    std::fs::create_dir(&copy).unwrap();
    for file in std::fs::read_dir(&path).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
    }
    assert_eq!(inspect::probe(&copy).unwrap().operations, 1);
    let refused = inspect::verify(&copy);
    assert!(matches!(refused, Err(Error::UnknownOperation { records: 1, .. })), "{refused:?}");
    Store::open_with(&copy, options().with_operations(ALL)).unwrap().close().unwrap();
    assert_eq!(inspect::verify(&copy).unwrap().operations, 0);
    // What was compacted still has the operations' numbers.
    timestone::offline::compact(&copy).unwrap();
    let store = Store::open_with(&copy, options().with_operations(ALL)).unwrap();
    store.register().unwrap().call(&ADD, &1).unwrap();
    let map: Map<u64, u64> = store.map("map").unwrap();
    assert_eq!(store.register().unwrap().read(|now| map.get(now, &3)), Some(5));
}

#[test]
fn a_backup_has_no_calls_of_the_time_in_which_it_was_written() {
    let disk = Simulated::new();
    let store = filled(&disk);
    let is_done = AtomicBool::new(false);
    let copies = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut me = store.register().unwrap();
            let mut rng = Rng::with_seed(8);
            while !is_done.load(Ordering::Relaxed) {
                call(&mut me, &mut rng, Durability::Durable);
            }
        });
        let copies: Vec<_> = (0..10)
            .map(|_| {
                let copy = Simulated::new();
                store.backup_on(&copy).unwrap();
                copy
            })
            .collect();
        is_done.store(true, Ordering::Relaxed);
        worker.join().unwrap();
        copies
    });
    for copy in copies {
        let store = open_with(copy, &[]).expect("there are no calls in it");
        let map: Map<u64, u64> = store.map("map").unwrap();
        assert_eq!(store.register().unwrap().read(|now| map.len(now)), KEYS as usize);
    }
    assert!(store.stats().operations > 0);
}

#[test]
fn a_store_in_memory_has_operations_too() {
    let options = options().with_operations(ALL);
    let store = Store::in_memory_with(options).unwrap();
    let map: Map<u64, u64> = store.map("map").unwrap();
    let mut me = store.register().unwrap();
    me.run(|tx| map.insert(tx, 1, 1).map(|_| ())).unwrap();
    me.call(&ADD, &1).unwrap();
    let ticket = me.submit_call(Durability::EVENTUAL, &ADD, &1).unwrap();
    ticket.wait().unwrap();
    assert_eq!(me.read(|now| map.get(now, &1)), Some(3));
}

//! Deferred update on real CPUs: against the standard library's sets, with more threads than CPUs,
//! and the holes of the published method.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use manycore::ldu::{
    Deferred, EAGER_BELOW, Global, Item, MANY, PerCore, Queue, Rooted, Structure, Table, every,
};
use manycore::lock;
use manycore::oplog::{self, Apply, OpLog};
use manycore_history::run::unless_interpreted;

/// The numbers from 0 on, in an order that depends on the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// An item that counts itself while it is there.
struct Counted<'a> {
    key: u64,
    alive: &'a AtomicU64,
}

impl<'a> Counted<'a> {
    fn new(key: u64, alive: &'a AtomicU64) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self { key, alive }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A set that records operations that no set may be asked for.
#[derive(Default)]
struct Keys(BTreeSet<u64>);

impl Structure<Counted<'_>> for Keys {
    fn insert(&mut self, item: Item<'_, Counted<'_>>) {
        assert!(self.0.insert(item.key), "inserted twice");
    }

    fn remove(&mut self, item: Item<'_, Counted<'_>>) {
        assert!(self.0.remove(&item.key), "removed twice");
    }
}

type Set<'a, Q> = Deferred<Keys, Counted<'a>, Q, lock::Adaptive>;

/// One thread inserts and removes, as a set of the standard library does; items come and go.
fn agrees_with_std<Q: Queue>(queue: Q, eager_below: u64, seed: u64) {
    const ITEMS: usize = 24;
    let alive = AtomicU64::new(0);
    {
        let set: Set<'_, Q> = Deferred::with_queue(Keys::default(), queue).eager_below(eager_below);
        let mut random = Random(seed);
        let mut present: Vec<_> = (0..ITEMS).map(|_| None).collect();
        let mut absent: Vec<_> =
            (0..ITEMS as u64).map(|key| Some(set.item(Counted::new(key, &alive)))).collect();
        for _ in 0..unless_interpreted(4_000, 250) {
            let index = random.below(ITEMS as u64) as usize;
            match random.below(8) {
                0 => set.read(|keys| {
                    let expected = present.iter().flatten().map(|item: &_| {
                        let item: &manycore::ldu::Present<'_, _, Counted<'_>, _, _> = item;
                        item.key
                    });
                    assert_eq!(keys.0, expected.collect::<BTreeSet<_>>());
                }),
                1 => {
                    // Another item in its place. A fresh one, whose key was another's in the same
                    // log.
                    absent[index] = None;
                    present[index] = None;
                    absent[index] =
                        Some(set.item(Counted::new(random.below(1 << 40) + 1_000, &alive)));
                }
                _ => match absent[index].take() {
                    Some(item) => present[index] = Some(item.insert()),
                    None => absent[index] = present[index].take().map(|item| item.remove()),
                },
            }
        }
        drop((present, absent));
        assert_eq!(set.read(|keys| keys.0.len()), 0);
        let statistics = set.statistics();
        assert!(statistics.applied < statistics.entries, "nothing was cancelled: {statistics:?}");
        assert_eq!(statistics.applied > 0, eager_below < u64::MAX, "{statistics:?}");
        assert_eq!(statistics.at_once > 0, eager_below > 0, "{statistics:?}");
    }
    assert_eq!(alive.into_inner(), 0, "every item dies, and once");
}

#[test]
fn a_set_of_the_standard_library_agrees() {
    for seed in 1..=unless_interpreted(8, 1) {
        // With the usual limit, reads are frequent now and then: there are eight updates for each.
        for eager_below in [0, EAGER_BELOW, u64::MAX] {
            agrees_with_std(Global::new(), eager_below, seed);
            agrees_with_std(PerCore::new(), eager_below, seed);
            agrees_with_std(Rooted::new(&Table::new(2)), eager_below, seed);
        }
    }
}

/// Threads insert and remove items of their own. A read sees all that its own thread did before.
fn stress<'a, Q: Queue + Sync>(sets: &[Set<'a, Q>], threads: u64, alive: &'a AtomicU64) {
    const ROUNDS: u64 = unless_interpreted(24_000, 60);
    thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut random = Random(thread + 1);
                let mut kept = Vec::new();
                for round in 0..ROUNDS / threads {
                    let set = &sets[random.below(sets.len() as u64) as usize];
                    let key = thread * ROUNDS + round;
                    let present = set.item(Counted::new(key, alive)).insert();
                    match random.below(16) {
                        0 => {
                            assert!(set.read(|keys| keys.0.contains(&key)), "{key} is missed");
                            let absent = present.remove();
                            assert!(!set.read(|keys| keys.0.contains(&key)), "{key} is still seen");
                            drop(absent.insert());
                        }
                        1..8 => kept.push(present),
                        8..12 => {
                            let again = (0..random.below(4))
                                .fold(present, |item, _| item.remove().insert());
                            drop(again);
                        }
                        _ => drop(present),
                    }
                    if kept.len() > 8 {
                        drop(kept.swap_remove(random.below(8) as usize));
                    }
                    set.synchronize_if_due(1_000_000);
                }
                drop(kept);
            });
        }
    });
    for set in sets {
        assert_eq!(set.read(|keys| keys.0.len()), 0);
    }
}

#[test]
fn more_threads_than_cpus() {
    fn set<'a, Q: Queue>(queue: Q, eager_below: u64) -> Set<'a, Q> {
        Deferred::with_queue(Keys::default(), queue).eager_below(eager_below)
    }
    let many = unless_interpreted(32, 3);
    for (threads, eager) in [(2, 0), (many, EAGER_BELOW), (2, u64::MAX), (many, u64::MAX)] {
        let alive = AtomicU64::new(0);
        stress(&[(); 2].map(|()| set(Global::new(), eager)), threads, &alive);
        stress(&[(); 1].map(|()| set(PerCore::new(), eager)), threads, &alive);
        let table = Arc::new(Table::new(2));
        let queue = || Rooted::new(table.clone());
        // More structures than the table has slots, so that they evict each other.
        stress(&[(); 5].map(|()| set(queue(), eager)), threads, &alive);
        assert_eq!(alive.into_inner(), 0, "every item dies, and once");
    }
}

/// Walkers in progress: an item that is removed and dropped while a thread reads the structure
/// stays there until the read is over.
#[test]
fn what_a_reader_sees_does_not_die() {
    let alive = AtomicU64::new(0);
    let set: Set<'_, Global> = Deferred::default();
    let item = set.item(Counted::new(7, &alive)).insert();
    thread::scope(|scope| {
        let (looks, begun) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let (set, alive) = (&set, &alive);
        scope.spawn(move || {
            set.read(|keys| {
                looks.send(()).unwrap();
                ended.recv().unwrap();
                assert!(keys.0.contains(&7));
                assert_eq!(alive.load(Ordering::Relaxed), 1, "it died under a reader");
            });
        });
        begun.recv().unwrap();
        drop(item);
        // The timer finds the lock taken.
        assert!(!set.synchronize_if_due(0));
        end.send(()).unwrap();
    });
    set.synchronize();
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

/// Walkers in progress: an owner can wait for walkers that have missed its insertion.
#[test]
fn readers_that_missed_an_insertion_are_waited_for() {
    let alive = AtomicU64::new(0);
    let set: Set<'_, Global> = Deferred::default();
    let missed = AtomicBool::new(false);
    thread::scope(|scope| {
        let (looks, begun) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let (set, missed) = (&set, &missed);
        scope.spawn(move || {
            set.read(|keys| {
                looks.send(()).unwrap();
                ended.recv().unwrap();
                assert!(keys.0.is_empty(), "it began before the insertion");
                missed.store(true, Ordering::Relaxed);
            });
        });
        begun.recv().unwrap();
        let _item = set.item(Counted::new(1, &alive)).insert();
        end.send(()).unwrap();
        set.wait_for_reads();
        assert!(missed.load(Ordering::Relaxed), "it did not wait");
    });
    set.wait_for_reads(); // no thread reads
}

/// Changed keys: an item's pending operations under its old key are applied before the item
/// changes.
#[test]
fn a_key_changes_when_nothing_is_pending() {
    let alive = AtomicU64::new(0);
    let set: Set<'_, Global> = Deferred::default();
    let other = set.item(Counted::new(1, &alive)).insert();
    let mut item = set.item(Counted::new(2, &alive)).insert().remove().insert().remove();
    item.edit(|counted| counted.key = 3);
    let item = item.insert();
    assert!(set.read(|keys| keys.0.iter().eq(&[1, 3])));
    let mut item = item.remove();
    item.edit(|counted| counted.key = 4);
    assert!(set.read(|keys| keys.0.iter().eq(&[1])), "it is removed under the key that it had");
    let key = item.into_inner().key;
    assert_eq!((key, other.key), (4, 1));
}

/// Threads that end with items leave them, and handles pass from thread to thread.
#[test]
fn handles_change_threads() {
    let alive = AtomicU64::new(0);
    let set: Set<'_, PerCore> = Deferred::default();
    let mut item = set.item(Counted::new(1, &alive));
    for _ in 0..20 {
        item = thread::scope(|scope| {
            let present = scope.spawn(|| item.insert()).join().unwrap();
            assert!(set.read(|keys| keys.0.contains(&1)));
            scope.spawn(|| present.remove()).join().unwrap()
        });
        assert!(set.read(|keys| keys.0.is_empty()));
    }
}

#[test]
fn a_timer_brings_it_up_to_date() {
    let alive = AtomicU64::new(0);
    let (set, stop): (Set<'_, Global>, _) = (Deferred::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| every(100_000, &stop, || set.synchronize()));
        drop(set.item(Counted::new(1, &alive)).insert());
        while set.statistics().released == 0 {
            manycore::sync::hint::yield_now();
        }
        stop.store(true, Ordering::Release);
    });
    assert!(set.synchronize_if_due(0));
    assert!(!set.synchronize_if_due(u64::MAX), "it was just done");
}

/// Dropped items do not wait for a read or for the timer: the thread that drops them drains them.
fn is_swept<Q: Queue>(queue: Q) {
    let alive = AtomicU64::new(0);
    let set: Set<'_, Q> = Deferred::with_queue(Keys::default(), queue);
    let most = u64::from(MANY) * u64::from(manycore::sync::cpu::count() + 1);
    for key in 0..unless_interpreted(20 * most, 2 * u64::from(MANY)) {
        drop(set.item(Counted::new(key, &alive)).insert());
        let alive = alive.load(Ordering::Relaxed);
        assert!(alive <= most, "{alive} items wait to be freed");
    }
    let swept = set.statistics();
    assert!(swept.drains == 0 && swept.sweeps > 0, "{swept:?}");
    // Also where they were in the structure meanwhile.
    let items = 0..unless_interpreted(2 * most, u64::from(MANY));
    let items: Vec<_> = items.map(|key| set.item(Counted::new(key, &alive)).insert()).collect();
    set.synchronize();
    drop(items);
    assert!(alive.load(Ordering::Relaxed) <= most, "{alive:?} items wait to be freed");
    assert_eq!(set.read(|keys| keys.0.len()), 0);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn what_is_dropped_is_swept() {
    is_swept(Global::new());
    is_swept(PerCore::new());
    is_swept(Rooted::new(&Table::new(2)));
}

/// OpLog: a log without reads does not grow without end, and all of its operations are applied in
/// the end.
#[test]
fn a_long_log_is_applied() {
    struct Sum(u64);
    impl Apply<u64> for Sum {
        fn apply(&mut self, number: u64) {
            self.0 += number;
        }
    }
    let sum = OpLog::<Sum, u64>::new(Sum(0));
    let operations = unless_interpreted(20, 3) * oplog::MANY as u64;
    (0..operations).for_each(|number| _ = sum.log(number));
    let most = oplog::MANY as u64 * u64::from(manycore::sync::cpu::count());
    let longest = sum.statistics().operations_max;
    assert!((1..=most).contains(&longest), "{longest}");
    assert_eq!(sum.read(|sum| sum.0), operations * (operations - 1) / 2);
}

/// Updates are applied inline only as long as reads are frequent.
#[test]
fn frequent_reads_make_updates_eager() {
    let alive = AtomicU64::new(0);
    let set: Set<'_, Global> = Deferred::default();
    let at_once = || set.statistics().at_once;
    let update = |times| {
        (0..times).for_each(|key| drop(set.item(Counted::new(key, &alive)).insert()));
    };
    update(100);
    assert_eq!(at_once(), 0, "no thread has read");
    let mut reads = 0;
    while at_once() == 0 {
        update(1);
        set.read(|keys| assert!(keys.0.is_empty()));
        reads += 1;
        assert!(reads < 100, "as many reads as updates are frequent");
    }
    let before = at_once();
    update(1);
    assert_eq!(at_once(), before + 2);
    assert!(!set.synchronize_if_due(0), "nothing waits");
    update(2_000);
    let after = at_once();
    assert!(after < before + 1_000, "{} of 4,000 updates without a read", after - before);
    update(1_000);
    assert_eq!(at_once(), after, "reads are frequent no more");
}

/// Operations that were logged because the lock was taken wait for the timer, even where updates
/// are eager.
#[test]
fn a_timer_is_of_use_to_eager_updates() {
    fn applies<Q: Queue>(queue: Q) {
        let alive = AtomicU64::new(0);
        let set: Set<'_, Q> = Deferred::with_queue(Keys::default(), queue).eager_below(u64::MAX);
        // A thread that reads has the lock.
        set.read(|_| drop(set.item(Counted::new(1, &alive)).insert()));
        assert_eq!(alive.load(Ordering::Relaxed), 1);
        assert!(set.synchronize_if_due(0));
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }
    applies(Global::new());
    applies(PerCore::new());
    applies(Rooted::new(&Table::new(2)));
}

/// A thread that tries to apply updates inline, and finds the lock mostly taken, does not try it
/// for some time.
#[test]
fn updates_are_logged_where_the_lock_is_mostly_taken() {
    let alive = AtomicU64::new(0);
    let set: Set<'_, Global> = Deferred::default().eager_below(u64::MAX);
    let at_once = || set.statistics().at_once;
    let update = || drop(set.item(Counted::new(1, &alive)).insert());
    update();
    assert_eq!(at_once(), 2);
    // A thread that reads has the lock.
    (0..100).for_each(|_| set.read(|_| update()));
    update();
    assert_eq!(at_once(), 2, "the lock was taken each time");
    let reads = (0..).take_while(|_| {
        set.read(|_| ());
        update();
        at_once() == 2
    });
    let reads = reads.count();
    assert!((100..1_000).contains(&reads), "tried again after {reads} reads");
}

/// While a read holds the lock, updates and dropped items wait.
#[test]
fn a_reader_may_drop_items() {
    let alive = AtomicU64::new(0);
    let set: Set<'_, Global> = Deferred::default().eager_below(u64::MAX);
    let items = unless_interpreted(2, 1) * u64::from(MANY);
    set.read(|_| {
        (0..items).for_each(|key| drop(set.item(Counted::new(key, &alive)).insert()));
        assert_eq!(alive.load(Ordering::Relaxed), items);
    });
    set.synchronize();
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

/// If a structure panics, nothing that others have logged is lost.
#[test]
fn a_panic_leaves_the_log() {
    struct Picky(u32);
    impl Structure<bool> for Picky {
        fn insert(&mut self, good: Item<'_, bool>) {
            assert!(*good, "a bad item");
            self.0 += 1;
        }

        fn remove(&mut self, _: Item<'_, bool>) {
            self.0 -= 1;
        }
    }
    let picky = Deferred::<Picky, bool>::new(Picky(0));
    let items = [true, false, true].map(|good| picky.item(good).insert());
    assert!(catch_unwind(AssertUnwindSafe(|| picky.synchronize())).is_err());
    assert_eq!(picky.read(|picky| picky.0), 2);
    items.into_iter().for_each(|item| item.keep());

    // If updates are applied inline, the updating thread gets the panic, and the item is not
    // inserted.
    let picky = picky.eager_below(u64::MAX);
    let insert = |good| picky.item(good).insert().keep();
    assert!(catch_unwind(AssertUnwindSafe(|| insert(false))).is_err());
    insert(true);
    assert_eq!(picky.read(|picky| picky.0), 3);
}

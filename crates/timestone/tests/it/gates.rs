//! The exact cost of a commit: calls of the device, and bytes. A change that increases one of them
//! has to be made here, too.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use timestone::device::{Device, Simulated, Storage};
use timestone::journal::record::Entry;
use timestone::volume::{Recovered, Source, Target};
use timestone::{Durability, Isolation, Map, Member, Operation, Stop, Store, Ticket, Transaction};

use crate::store::options;

/// What was done to all files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Calls {
    writes: u64,
    bytes: u64,
    flushes: u64,
}

impl Calls {
    const NONE: Self = Self { writes: 0, bytes: 0, flushes: 0 };

    fn new(writes: u64, bytes: u64, flushes: u64) -> Self {
        Self { writes, bytes, flushes }
    }
}

/// A disk in memory that counts.
#[derive(Clone, Default)]
struct Counting {
    disk: Simulated,
    calls: Arc<Mutex<Calls>>,
}

struct CountingDevice {
    below: Arc<dyn Device>,
    calls: Arc<Mutex<Calls>>,
}

impl Counting {
    /// The calls of some work.
    fn of(&self, work: impl FnOnce()) -> Calls {
        let before = *self.calls.lock();
        work();
        let after = *self.calls.lock();
        Calls {
            writes: after.writes - before.writes,
            bytes: after.bytes - before.bytes,
            flushes: after.flushes - before.flushes,
        }
    }

    /// A store that only writes commits for which a thread waits.
    fn open(&self) -> Store {
        let options = options().with_window(Duration::MAX).with_ring_bytes(256 << 10);
        Store::open_on(Arc::new(self.clone()), options).unwrap()
    }
}

impl Storage for Counting {
    fn open(&self, name: &'static str) -> io::Result<Arc<dyn Device>> {
        let below = self.disk.open(name)?;
        Ok(Arc::new(CountingDevice { below, calls: self.calls.clone() }))
    }

    fn flush_names(&self) -> io::Result<()> {
        self.disk.flush_names()
    }
}

impl Device for CountingDevice {
    fn size(&self) -> io::Result<u64> {
        self.below.size()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.below.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut calls = self.calls.lock();
        calls.writes += 1;
        calls.bytes += bytes.len() as u64;
        self.below.write_at(offset, bytes)
    }

    fn flush(&self) -> io::Result<()> {
        self.calls.lock().flushes += 1;
        self.below.flush()
    }

    fn cut(&self, size: u64) -> io::Result<()> {
        self.below.cut(size)
    }
}

/// A store with a map of 1000 keys, in an image.
fn filled(disk: &Counting) -> (Store, Map<u64, u64>) {
    let store = disk.open();
    let map = store.map("numbers").unwrap();
    store
        .register()
        .unwrap()
        .run(|tx| (0..1000).try_for_each(|key| map.insert(tx, key, 0).map(|_| ())))
        .unwrap();
    store.checkpoint().unwrap();
    (store, map)
}

fn submit<'s>(me: &mut Member<'s>, map: Map<u64, u64>, updates: u64) -> Vec<Ticket<'s, bool>> {
    (0..updates)
        .map(|key| me.submit(|tx| map.update(tx, &key, |value| *value += 1)).unwrap())
        .collect()
}

#[test]
fn a_durable_update_that_is_waited_for_is_one_write_of_a_block_and_one_flush() {
    let disk = Counting::default();
    let (store, map) = filled(&disk);
    let mut me = store.register().unwrap();
    for _ in 0..20 {
        let calls = disk.of(|| _ = me.run(|tx| map.update(tx, &7, |value| *value += 1)).unwrap());
        assert_eq!(calls, Calls::new(1, 4096, 1));
    }
    assert_eq!(disk.of(|| _ = me.read(|now| map.get(now, &7))), Calls::NONE);
    assert_eq!(disk.of(|| _ = me.run(|tx| Ok(map.get(tx, &7))).unwrap()), Calls::NONE);
}

#[test]
fn updates_on_their_way_share_a_write_and_a_flush() {
    let disk = Counting::default();
    let (store, map) = filled(&disk);
    let mut me = store.register().unwrap();
    // A frame has 64 bytes, and each update 40: padded to blocks.
    for (updates, bytes) in [(1, 4096), (64, 4096), (100, 4096), (101, 8192), (1000, 40_960)] {
        let calls = disk.of(|| {
            let tickets = submit(&mut me, map, updates);
            tickets.last().unwrap().wait().unwrap();
            assert!(tickets.iter().all(Ticket::is_durable));
        });
        assert_eq!(calls, Calls::new(1, bytes, 1), "{updates} updates");
        assert!(updates < 64 || bytes / updates <= 100, "{updates} updates");
    }
}

#[test]
fn commits_of_less_durability_are_fewer_calls() {
    let disk = Counting::default();
    let (store, map) = filled(&disk);
    let mut me = store.register().unwrap();
    let mut update = |durability| {
        disk.of(|| {
            _ = me.run_with(durability, |tx| map.update(tx, &7, |value| *value += 1)).unwrap()
        })
    };
    assert_eq!(update(Durability::Buffered), Calls::new(1, 4096, 0));
    let eventual = Durability::Eventual { window: Duration::MAX };
    for _ in 0..100 {
        assert_eq!(update(eventual), Calls::NONE);
    }
    // It takes them along.
    assert_eq!(update(Durability::Durable), Calls::new(1, 8192, 1));
    assert_eq!(disk.of(|| store.sync().unwrap()), Calls::NONE);
}

/// Bytes of the records of a journal, without those of frames.
struct Records(u64);

impl Target for Records {
    fn apply(&mut self, source: Source<'_>, entry: Entry<'_>) -> Result<(), String> {
        if matches!(source, Source::Journal { .. }) {
            self.0 += 16 + entry.words.len() as u64;
        }
        Ok(())
    }
}

/// Bytes of the record of one transaction.
fn record(disk: &Counting, work: impl FnOnce()) -> u64 {
    let bytes = || {
        let mut records = Records(0);
        let read = Recovered::read_existing(&disk.disk.survivor(), &mut records).unwrap();
        records.0 + 16 * read.transactions
    };
    let before = bytes();
    work();
    bytes() - before
}

#[test]
fn records_have_what_was_changed_and_no_more() {
    let disk = Counting::default();
    let (store, map) = filled(&disk);
    let large: Map<u64, [u64; 100]> = store.map("large").unwrap();
    let mut me = store.register().unwrap();
    let run =
        |me: &mut Member<'_>, work: &mut dyn FnMut(&mut Member<'_>)| record(&disk, || work(me));
    let update = run(&mut me, &mut |me| {
        me.run(|tx| map.update(tx, &7, |value| *value += 1)).unwrap();
    });
    assert_eq!(update, 16 + 16 + 8);
    let transfer = run(&mut me, &mut |me| {
        me.run(|tx| {
            map.update(tx, &1, |value| *value += 1)?;
            map.update(tx, &2, |value| *value += 1)
        })
        .unwrap();
    });
    assert_eq!(transfer, 16 + 2 * (16 + 8));
    let same = run(&mut me, &mut |me| {
        me.run(|tx| map.update(tx, &7, |value| *value += 0)).unwrap();
    });
    assert_eq!(same, 16, "it is a commit, and changes nothing");
    let insert = run(&mut me, &mut |me| {
        me.run(|tx| large.insert(tx, 1, [1; 100])).unwrap();
    });
    // The leaf: key and value, without the word that leads nowhere; and a word of the node.
    assert_eq!(insert, 16 + (16 + 101 * 8) + (16 + 8));
    let one_word = run(&mut me, &mut |me| {
        me.run(|tx| large.update(tx, &1, |words| words[50] = 2)).unwrap();
    });
    assert_eq!(one_word, 16 + 16 + 8, "of 100 words one has changed");
    let remove = run(&mut me, &mut |me| {
        me.run(|tx| large.remove(tx, &1)).unwrap();
    });
    assert_eq!(remove, 16 + 16 + (16 + 8), "an end has no words");
}

/// Adds to all of the map.
fn add_to_all(tx: &mut Transaction<'_, '_>, by: &u64) -> Result<(), Stop> {
    let map: Map<u64, u64> = tx.map("numbers")?;
    (0..1000).try_for_each(|key| map.update(tx, &key, |value| *value += by).map(|_| ()))
}

const ADD: Operation<u64> = Operation::new("add to all", 1, add_to_all);

#[test]
fn a_call_has_its_arguments_and_no_more() {
    let disk = Counting::default();
    drop(filled(&disk));
    let with = options().with_window(Duration::MAX).with_ring_bytes(256 << 10);
    let with = with.with_operations(&[&ADD]);
    let store = Store::open_on(Arc::new(disk.clone()), with).unwrap();
    let mut me = store.register().unwrap();
    // In a block: 32 bytes, and the argument. The operation's writes are 24 KB.
    assert_eq!(disk.of(|| me.call(&ADD, &1).unwrap()), Calls::new(1, 4096, 1));
    let values = Isolation::Snapshot;
    let bytes = (64_u64 + 16 + 1000 * 24).next_multiple_of(4096);
    assert_eq!(disk.of(|| me.call_with(values, &ADD, &1).unwrap()), Calls::new(1, bytes, 1));
    // 64 that share a frame: 40 bytes each.
    let tickets: Vec<_> = (0..64)
        .map(|_| me.submit_call(Durability::Eventual { window: Duration::MAX }, &ADD, &1).unwrap())
        .collect();
    let calls = disk.of(|| tickets.last().unwrap().wait().unwrap());
    assert_eq!((calls.bytes, calls.flushes), ((64 + 64 * 40_u64).next_multiple_of(4096), 1));
}

#[test]
fn an_image_is_written_once_and_the_superblock_twice() {
    let disk = Counting::default();
    let (store, _) = filled(&disk);
    let calls = disk.of(|| store.checkpoint().unwrap());
    // The image in one frame, and its flush; each copy of the superblock, and its flush.
    assert_eq!((calls.writes, calls.flushes), (3, 3));
    assert!((1000 * 40..1000 * 128).contains(&calls.bytes), "{calls:?}");
    let bytes = calls.bytes;
    assert_eq!(disk.of(|| store.close().unwrap()), calls, "closing is an image");
    // A store that was closed is opened by a superblock for a new life of its journal.
    let calls = disk.of(|| _ = disk.open().stats());
    assert_eq!(calls, Calls::new(2 + 3, bytes + 1024, 2 + 3), "opened and closed");
}

//! When commits return, and their waiters: windows, stores in memory, futures.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use timestone::device::{Fault, Faulty, Simulated};
use timestone::{Durability, Error, Isolation, Map, Options, Stop, Store};

use crate::store::{contents, open, options};
use crate::threads::{Bank, THREADS};

const NEVER: Duration = Duration::MAX;

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// A store whose commits no thread writes, unless they say so.
fn unhurried(disk: &Simulated) -> Store {
    Store::open_on(Arc::new(disk.clone()), options().with_window(NEVER)).unwrap()
}

#[test]
fn each_commit_is_written_within_its_own_window() {
    let store = unhurried(&Simulated::new());
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    let mut eventually = |window| {
        let durability = Durability::Eventual { window };
        me.run_with(durability, |tx| map.insert(tx, 1, 1)).unwrap();
    };
    let before = store.stats().transactions;
    eventually(NEVER);
    eventually(Duration::from_secs(3600));
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(store.stats().transactions, before, "their windows are not over");
    let begin = Instant::now();
    eventually(Duration::from_millis(20));
    while store.stats().transactions < before + 3 {
        std::thread::sleep(Duration::from_millis(1));
        assert!(begin.elapsed() < Duration::from_secs(60), "it was not written");
    }
    assert!(begin.elapsed() >= Duration::from_millis(20), "written before its window was over");
    let ticket = me
        .submit_with(Durability::Eventual { window: Duration::from_millis(1) }, |tx| {
            map.insert(tx, 2, 2)
        })
        .unwrap();
    let begin = Instant::now();
    while !ticket.is_durable() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no thread has written it");
        std::thread::yield_now();
    }
}

#[test]
fn futures_wait_for_commits_and_have_what_they_return() {
    let disk = Simulated::new();
    let store = unhurried(&disk);
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    let tickets: Vec<_> = (0..100)
        .map(|key| me.submit(|tx| map.insert(tx, key, key).map(|_| key)).unwrap())
        .collect();
    let returned = block_on(async {
        let mut returned = Vec::new();
        for ticket in tickets {
            returned.push(ticket.await.unwrap());
        }
        returned
    });
    assert_eq!(returned, (0..100).collect::<Vec<_>>());
    // A power cut now takes nothing of it.
    disk.recording().cuts(disk.calls(), |_, cut| {
        cut.images(&mut fastrand::Rng::with_seed(1), 5, false, |left| {
            assert_eq!(contents(&open(&left), "numbers").len(), 100);
        });
    });
}

#[test]
fn a_future_that_is_dropped_loses_nothing() {
    let disk = Simulated::new();
    let store = unhurried(&disk);
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    for key in 0..50 {
        let mut future = pin!(me.submit(|tx| map.insert(tx, key, key)).unwrap().into_future());
        // Polled or not, and dropped before it is ready or after.
        if key % 3 > 0 {
            let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }
    let last = me.submit(|tx| map.insert(tx, 50, 50)).unwrap();
    drop(me);
    block_on(last.into_future()).unwrap();
    assert_eq!(contents(&open(&disk.survivor()), "numbers").len(), 51);
}

#[test]
fn threads_and_futures_wait_beside_each_other() {
    let store = open(&Simulated::new());
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let store = &store;
            scope.spawn(move || {
                let mut me = store.register().unwrap();
                for key in 0..300 {
                    let key = thread << 32 | key;
                    let ticket = me.submit(|tx| map.insert(tx, key, key)).unwrap();
                    match thread % 2 {
                        0 => block_on(ticket.into_future()).map(|_| ()).unwrap(),
                        _ => ticket.wait().unwrap(),
                    }
                }
            });
        }
    });
    assert_eq!(contents(&store, "numbers").len(), 1800);
}

#[test]
fn a_future_says_why_its_commit_did_not_get_to_the_disk() {
    let disk = Arc::new(Faulty::new(Simulated::new()));
    let store = Store::open_on(disk.clone(), options().with_window(NEVER)).unwrap();
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    disk.plan(0, Fault::WriteError);
    let ticket = me.submit(|tx| map.insert(tx, 1, 1)).unwrap();
    assert!(matches!(block_on(ticket.into_future()), Err(Error::Io { .. })));
    // The disk is well again: that commit gets there with the next.
    block_on(me.submit(|tx| map.insert(tx, 2, 2)).unwrap().into_future()).unwrap();
    assert_eq!(contents(&open(&disk.below().survivor()), "numbers"), [(1, 1), (2, 2)]);
    disk.plan(0, Fault::Flush);
    let ticket = me.submit(|tx| map.insert(tx, 3, 3)).unwrap();
    assert!(block_on(ticket.into_future()).is_err());
}

#[test]
fn a_store_in_memory_does_what_another_does() {
    let options = Options::default().with_heap_bytes(64 << 20).with_ring_bytes(8 << 10);
    let store = Store::in_memory_with(options).unwrap();
    let bank = Bank::open(&store);
    bank.fill(&mut store.register().unwrap());
    let all = [Durability::Durable, Durability::Buffered, Durability::EVENTUAL];
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                let mut me = store.register().unwrap();
                let mut rng = fastrand::Rng::with_seed(thread);
                for count in 1..=1000 {
                    let how = all[rng.usize(..3)];
                    bank.transfer(&mut me, thread, count, &mut rng, how);
                }
                me.submit_with(Isolation::Serializable, |_| Ok(())).unwrap().wait().unwrap();
            });
        }
        for _ in 0..10 {
            let copy = Simulated::new();
            store.backup_on(&copy).unwrap();
            let copy = open(&copy);
            assert!(Bank::open(&copy).check(&mut copy.register().unwrap()).is_some());
        }
    });
    let made = bank.check(&mut store.register().unwrap()).unwrap();
    assert_eq!(made, vec![1000; THREADS as usize]);
    assert_eq!(store.stats().frames, 0, "nothing is written");
    store.checkpoint().unwrap();
    store.close().unwrap();
}

#[test]
fn what_has_committed_in_memory_every_thread_sees() {
    let store = Store::in_memory().unwrap();
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let (mut me, mut other) = (store.register().unwrap(), store.register().unwrap());
    for value in 0..1000 {
        me.run(|tx| map.insert(tx, 1, value)).unwrap();
        assert_eq!(other.read(|now| map.get(now, &1)), Some(value));
        assert_eq!(other.run(|tx| Ok(map.get(tx, &1))).unwrap(), Some(value));
    }
}

#[test]
fn memory_of_objects_that_come_and_go_is_used_again_without_files() {
    let options = Options::default().with_heap_bytes(16 << 20);
    let store = Store::in_memory_with(options).unwrap();
    let map: Map<u64, [u64; 100]> = store.map("large").unwrap();
    let mut me = store.register().unwrap();
    for key in 0..100_000 {
        me.run(|tx| map.insert(tx, key, [key; 100])).unwrap();
        me.run(|tx| map.remove(tx, &key)).unwrap();
    }
}

#[test]
fn transactions_without_closures() {
    let disk = Simulated::new();
    let store = unhurried(&disk);
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let (mut me, mut other) = (store.register().unwrap(), store.register().unwrap());
    let mut tx = me.begin(Isolation::Serializable).unwrap();
    map.insert(&mut tx, 1, 1).unwrap();
    let first = tx.commit().unwrap();
    assert!(!first.is_durable());
    let second = me.submit(|tx| map.insert(tx, 2, 2)).unwrap();
    assert!(second.stamp() > first.stamp());
    store.wait(first.stamp()).unwrap();
    assert!(first.is_durable() && store.durable() >= first.stamp());
    // A transaction that is dropped has no effect; one that conflicts with a faster one runs again.
    let mut tx = me.begin(Isolation::Snapshot).unwrap();
    map.insert(&mut tx, 3, 3).unwrap();
    drop(tx);
    let mut tx = me.begin(Isolation::Snapshot).unwrap();
    other.run(|tx| map.insert(tx, 1, 2)).unwrap();
    let Err(Stop::Conflict(conflict)) = map.insert(&mut tx, 1, 3) else { panic!("both commit") };
    drop(tx);
    me.back_off(conflict, 0).unwrap();
    let mut tx = me.begin(Isolation::Snapshot).unwrap();
    map.insert(&mut tx, 1, 3).unwrap();
    tx.commit().unwrap().wait_for(Durability::Buffered).unwrap();
    let now = me.begin_read();
    assert_eq!((map.get(&now, &1), map.get(&now, &2), map.get(&now, &3)), (Some(3), Some(2), None));
}

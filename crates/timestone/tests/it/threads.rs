//! More threads than cores, on a disk that is cut at every call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use timestone::device::Simulated;
use timestone::{Durability, Map, Member, Store};

use crate::gated::Gated;
use crate::store::{open, options};

pub const ACCOUNTS: u64 = 12;
const EACH: u64 = 100;
pub const THREADS: u64 = 8;

/// Accounts, and for each thread how many transfers it has made.
#[derive(Clone, Copy)]
pub struct Bank {
    accounts: Map<u64, u64>,
    transfers: Map<u64, u64>,
}

impl Bank {
    pub fn open(store: &Store) -> Self {
        Self {
            accounts: store.map("accounts").unwrap(),
            transfers: store.map("transfers").unwrap(),
        }
    }

    pub fn fill(self, me: &mut Member<'_>) {
        me.run(|tx| {
            for account in 0..ACCOUNTS {
                self.accounts.insert(tx, account, EACH)?;
            }
            (0..THREADS).try_for_each(|thread| self.transfers.insert(tx, thread, 0).map(|_| ()))
        })
        .unwrap();
    }

    /// One transfer, which is the thread's number `count`.
    pub fn transfer(
        self,
        me: &mut Member<'_>,
        thread: u64,
        count: u64,
        rng: &mut Rng,
        how: Durability,
    ) {
        let (from, to) = (rng.u64(0..ACCOUNTS), rng.u64(0..ACCOUNTS));
        me.run_with(how, |tx| {
            let sum = self.accounts.get(tx, &from).unwrap().min(7);
            self.accounts.update(tx, &from, |balance| *balance -= sum)?;
            self.accounts.update(tx, &to, |balance| *balance += sum)?;
            self.transfers.update(tx, &thread, |made| *made = count)
        })
        .unwrap();
    }

    /// The transfers of all threads; none if the bank is not there yet.
    pub fn check(self, me: &mut Member<'_>) -> Option<Vec<u64>> {
        me.read(|now| {
            if self.accounts.is_empty(now) {
                assert!(self.transfers.is_empty(now));
                return None;
            }
            let sum: u64 =
                (0..ACCOUNTS).map(|account| self.accounts.get(now, &account).unwrap()).sum();
            assert_eq!(sum, ACCOUNTS * EACH, "half of a transfer");
            Some((0..THREADS).map(|thread| self.transfers.get(now, &thread).unwrap()).collect())
        })
    }
}

#[test]
fn a_cut_beside_many_threads_leaves_whole_transfers_and_all_that_were_acknowledged() {
    let disk = Simulated::new();
    // The number of calls of the disk, the thread, and how many of its transfers are acknowledged
    // by then.
    let acknowledged: Mutex<Vec<(usize, usize, u64)>> = Mutex::default();
    let filled;
    {
        let store = open(&disk);
        let bank = Bank::open(&store);
        bank.fill(&mut store.register().unwrap());
        filled = disk.calls();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (store, disk, acknowledged) = (&store, &disk, &acknowledged);
                scope.spawn(move || {
                    let mut me = store.register().unwrap();
                    let mut rng = Rng::with_seed(thread);
                    for count in 1..=40 {
                        bank.transfer(&mut me, thread, count, &mut rng, Durability::Durable);
                        acknowledged.lock().push((disk.calls(), thread as usize, count));
                        // A snapshot sees this thread's transfer, and no half of another's.
                        assert_eq!(bank.check(&mut me).unwrap()[thread as usize], count);
                    }
                });
            }
        });
    }
    let acknowledged = acknowledged.into_inner();
    let mut rng = Rng::with_seed(77);
    let mut images = 0;
    disk.recording().cuts(0, |calls, cut| {
        let mut promised = vec![0; THREADS as usize];
        for (at, thread, count) in &acknowledged {
            if *at <= calls {
                promised[*thread] = promised[*thread].max(*count);
            }
        }
        cut.images(&mut rng, 3, false, |left| {
            images += 1;
            let store = open(&left);
            let bank = Bank::open(&store);
            match bank.check(&mut store.register().unwrap()) {
                None => assert!(calls < filled, "the bank is lost"),
                Some(made) => {
                    let all = made.iter().zip(&promised).all(|(made, promised)| made >= promised);
                    assert!(all, "{made:?} are there, {promised:?} were acknowledged");
                }
            }
        });
    });
    assert!(images > 300, "{images}");
}

#[test]
fn snapshots_beside_transfers_see_whole_ones_and_never_go_back() {
    let store = open(&Simulated::new());
    let bank = Bank::open(&store);
    bank.fill(&mut store.register().unwrap());
    let made = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, made) = (&store, &made);
            scope.spawn(move || {
                let mut me = store.register().unwrap();
                let mut rng = Rng::with_seed(thread);
                let mut before = vec![0; THREADS as usize];
                for count in 1..=3000 {
                    bank.transfer(&mut me, thread, count, &mut rng, Durability::EVENTUAL);
                    let seen = bank.check(&mut me).unwrap();
                    assert_eq!(seen[thread as usize], count, "a thread's own transfer");
                    assert!(seen.iter().zip(&before).all(|(seen, before)| seen >= before));
                    before = seen;
                    made.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(made.load(Ordering::Relaxed), THREADS * 3000);
}

#[test]
fn tickets_are_durable_in_their_order() {
    let disk = Simulated::new();
    let store = open(&disk);
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    let tickets: Vec<_> =
        (0..500).map(|key| me.submit(|tx| map.insert(tx, key, key)).unwrap()).collect();
    tickets[400].wait().unwrap();
    assert!(tickets[..=400].iter().all(|ticket| ticket.is_durable()));
    let left = open(&disk.survivor());
    let map: Map<u64, u64> = left.map("numbers").unwrap();
    let there = left
        .register()
        .unwrap()
        .read(|now| (0..).take_while(|key| map.get(now, key).is_some()).count());
    assert!(there > 400, "{there}");
    tickets.last().unwrap().wait().unwrap();
}

#[test]
fn a_store_with_too_small_a_journal_for_its_threads_says_so() {
    let store =
        Store::open_on(Arc::new(Simulated::new()), options().with_ring_bytes(512 << 10)).unwrap();
    let _one = store.register().unwrap();
    let refused = store.register();
    assert!(refused.is_err_and(|error| error.to_string().contains("Options::ring_bytes")));
}

#[test]
fn a_commit_beside_an_image_does_not_wait_for_another_commit() {
    let disk = Gated::new(|_| true);
    let store = Store::open_on(Arc::new(disk.clone()), options()).unwrap();
    let map: Map<u64, u64> = store.map("numbers").unwrap();
    let mut me = store.register().unwrap();
    let moment = Duration::from_millis(100);
    let ((shut, is_shut), (done, is_done)) = (mpsc::channel(), mpsc::channel());
    std::thread::scope(|scope| {
        let (store, disk) = (&store, &disk);
        scope.spawn(move || {
            let _shut = disk.shut();
            shut.send(()).unwrap();
            std::thread::sleep(2 * moment);
        });
        is_shut.recv().unwrap();
        scope.spawn(|| store.checkpoint().unwrap());
        let watchdog = scope.spawn(move || {
            let is_in_time = is_done.recv_timeout(Duration::from_secs(20)).is_ok();
            // Another commit wakes one that sleeps, so that the test ends also if it fails.
            store.sync().unwrap();
            is_in_time
        });
        // The image is being written, so that the commit finds the journal in use.
        std::thread::sleep(moment);
        me.run(|tx| map.insert(tx, 1, 1)).unwrap();
        let _ = done.send(());
        assert!(watchdog.join().unwrap(), "no thread has woken the commit");
    });
}

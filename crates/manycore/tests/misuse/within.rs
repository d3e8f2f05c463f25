//! Destructors and sections that use the very structure that has them: they get on, and nothing is
//! lost.

use std::cell::Cell;
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use manycore::collections::hash::{ChainedTable, CombinedTable, LockedTable, RcuTable};
use manycore::collections::list::{CombinedList, LockedList, RcuList};
use manycore::collections::queue::{OrderedQueue, TakeAll};
use manycore::collections::space;
use manycore::collections::stack::{OrderedStack, TreiberStack};
use manycore::collections::tree::{CombinedTree, LockedTree};
use manycore::lock::Adaptive;
use manycore::reclaim::Config;
use manycore::{ConcurrentMap, MapHandle, rlu};

/// Runs a function on another thread, which must not wait for ever.
fn gets_on(f: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        f();
        _ = done.send(());
    });
    if is_done.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("a destructor waits for the lock under which it runs");
    }
    thread.join().unwrap();
}

type Use = Arc<dyn Fn() + Send + Sync>;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// At its end, uses something.
struct Uses(Use);

impl Uses {
    fn now(&self) {
        if DEPTH.get() < 2 {
            DEPTH.set(DEPTH.get() + 1);
            (self.0)();
            DEPTH.set(DEPTH.get() - 1);
        }
    }
}

impl Drop for Uses {
    fn drop(&mut self) {
        self.now();
    }
}

impl Clone for Uses {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

fn values_use_their_map<M: ConcurrentMap<u64, Uses> + Send + Sync + 'static>(
    make: impl FnOnce() -> M + Send + 'static,
) {
    gets_on(move || {
        let map = Arc::new(make());
        let weak = Arc::downgrade(&map);
        let uses: Use = Arc::new(move || {
            let Some(map) = weak.upgrade() else { return };
            let mut handle = map.handle();
            _ = handle.get(&1);
            _ = handle.insert(7, Uses(Arc::new(|| ())));
            _ = handle.remove(&7);
        });
        let mut handle = map.handle();
        for number in 0..crate::ROUNDS {
            _ = handle.insert(number % 10, Uses(Arc::clone(&uses)));
            _ = handle.get(&(number % 7));
            _ = handle.remove(&(number % 5));
        }
    });
}

#[test]
fn values_of_maps() {
    values_use_their_map(LockedList::<u64, Uses, Adaptive>::default);
    values_use_their_map(CombinedList::<u64, Uses>::default);
    values_use_their_map(RcuList::<u64, Uses, Adaptive>::default);
    values_use_their_map(|| LockedTable::<u64, Uses, Adaptive>::new(1));
    values_use_their_map(|| CombinedTable::<u64, Uses>::new(ChainedTable::new(1)));
    values_use_their_map(|| RcuTable::<u64, Uses, Adaptive>::new(1, Config::default()));
    values_use_their_map(LockedTree::<u64, Uses, Adaptive>::default);
    values_use_their_map(CombinedTree::<u64, Uses>::default);
    values_use_their_map(space::BTreeMap::<u64, Uses>::default);
    values_use_their_map(space::BTreeMap::<u64, Uses, rlu::Domain>::default);
    values_use_their_map(space::ArtMap::<u64, Uses>::default);
    values_use_their_map(space::ArtMap::<u64, Uses, rlu::Domain>::default);
    values_use_their_map(space::HashMap::<u64, Uses>::default);
}

#[test]
fn values_of_queues_and_stacks() {
    macro_rules! uses {
        ($type:ty, $push:expr, $pop:expr) => {
            gets_on(|| {
                static ORDERED: OnceLock<$type> = OnceLock::new();
                let ordered = ORDERED.get_or_init(Default::default);
                let (push, pop): (fn(&$type, Uses), fn(&$type)) = ($push, $pop);
                let uses: Use = Arc::new(move || {
                    push(ordered, Uses(Arc::new(|| ())));
                    pop(ordered);
                });
                for _ in 0..crate::ROUNDS {
                    push(ordered, Uses(Arc::clone(&uses)));
                    push(ordered, Uses(Arc::clone(&uses)));
                    pop(ordered);
                }
            })
        };
    }
    uses!(OrderedQueue<Uses>, |p, v| p.handle().push(v), |p| drop(p.pop()));
    uses!(OrderedStack<Uses>, |p, v| p.handle().push(v), |p| drop(p.pop()));
    uses!(TakeAll<Uses>, |p, v| p.push(v), |p| p.take().for_each(drop));
    uses!(TreiberStack<Uses>, |p, v| p.handle().push(v), |p| drop(p.handle().pop()));
}

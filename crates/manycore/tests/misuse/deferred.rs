//! Structures behind logs: panics when they are called, and items whose destructors panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use manycore::ldu::{Deferred, Global, Item, PerCore, Queue, Rooted, Structure, Table};
use manycore::lock::Adaptive;

use crate::live::{Live, live};

/// Panics at this many calls from now on.
struct Panics {
    after: u64,
    items: u64,
}

impl Structure<Live> for Panics {
    fn insert(&mut self, _: Item<'_, Live>) {
        self.items += 1;
        assert!(self.items <= self.after, "the structure");
    }

    fn remove(&mut self, _: Item<'_, Live>) {
        self.items -= 1;
    }
}

fn structure<Q: Queue>(queue: Q, after: u64) -> Deferred<Panics, Live, Q, Adaptive> {
    Deferred::with_queue(Panics { after, items: 0 }, queue).eager_below(0)
}

const THREADS: u64 = 4;

/// Logs insertions on all CPUs. Every second item is dropped again.
fn log<Q: Queue + Sync>(deferred: &Deferred<Panics, Live, Q, Adaptive>, most: u64) {
    thread::scope(|s| {
        for me in 0..THREADS {
            s.spawn(move || {
                for number in 0..most {
                    let item = deferred.item(Live::new(me));
                    if number % 2 == 0 {
                        item.insert().keep();
                    } else {
                        drop(item);
                    }
                    if number % 8 == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
    });
}

/// A structure that panics at its end leaves nothing behind that would mislead the next one in the
/// same table.
fn ends_by_a_panic<Q: Queue + Sync>(queue: impl Fn() -> Q) {
    let kept = AtomicU64::new(0);
    let leaked = live(|| {
        for after in [0, 1, 7] {
            for _ in 0..crate::ROUNDS / 20 + 1 {
                let deferred = structure(queue(), after);
                log(&deferred, 40);
                assert!(catch_unwind(AssertUnwindSafe(|| drop(deferred))).is_err());
                let next = structure(queue(), u64::MAX);
                log(&next, 40);
                assert_eq!(next.read(|structure| structure.items), THREADS * 20);
                kept.fetch_add(2 * THREADS * 20, Relaxed);
            }
        }
    });
    assert_eq!(leaked, kept.into_inner().cast_signed(), "what was kept stays, and nothing else");
}

#[test]
fn a_structure_panics_at_its_end() {
    crate::quietly(|| {
        let table = Table::new(1);
        ends_by_a_panic(|| Rooted::new(&table));
        let table = Arc::new(Table::new(1));
        ends_by_a_panic(|| Rooted::new(Arc::clone(&table)));
        ends_by_a_panic(Global::new);
        ends_by_a_panic(PerCore::default);
    });
}

/// A read that panics leaves the unapplied operations in the log, and the next read applies them.
#[test]
fn a_structure_panics_when_it_is_read() {
    crate::quietly(|| {
        let table = Table::new(1);
        let leaked = live(|| {
            let deferred = structure(Rooted::new(&table), 10);
            let items: Vec<_> = (0..40).map(|n| deferred.item(Live::new(n)).insert()).collect();
            let mut panics = 0;
            while catch_unwind(AssertUnwindSafe(|| deferred.synchronize())).is_err() {
                panics += 1;
            }
            assert_eq!((panics, deferred.read(|structure| structure.items)), (30, 40));
            drop(items);
            assert_eq!(deferred.read(|structure| structure.items), 0);
        });
        assert_eq!(leaked, 0);
    });
}

/// Some destructors of items panic. All others run nevertheless.
#[test]
fn items_panic_when_they_are_dropped() {
    crate::quietly(|| {
        let table = Table::new(1);
        let leaked = live(|| {
            let deferred = structure(Rooted::new(&table), u64::MAX);
            for number in 0..100 {
                drop(deferred.item(Live::new(number)).insert());
            }
            drop(deferred.item(Live::panicking(0)).insert());
            for number in 0..100 {
                drop(deferred.item(Live::new(number)));
            }
            assert!(catch_unwind(AssertUnwindSafe(|| drop(deferred))).is_err());
        });
        assert_eq!(leaked, 0);
    });
}

//! Deferred update: reads see earlier operations, the last update of an object wins, and every
//! object is freed.

use std::cell::Cell;

use manycore_sim::thread;
use manycore_simulated::ldu::{
    Deferred, EAGER_BELOW, Global, Item, PerCore, Queue, Rooted, Structure, Table,
};
use manycore_simulated::lock::Futex;

use crate::explore;

/// Which items are in the structure.
#[derive(Default)]
struct Present(Vec<u32>);

/// An item that counts itself while it is there.
struct Counted<'a>(u32, &'a Cell<u32>);

// SAFETY: one thread of the host runs all simulated ones.
unsafe impl Send for Counted<'_> {}
// SAFETY: one thread of the host runs all simulated ones.
unsafe impl Sync for Counted<'_> {}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.1.set(self.1.get() - 1);
    }
}

impl Structure<Counted<'_>> for Present {
    fn insert(&mut self, item: Item<'_, Counted<'_>>) {
        assert!(!self.0.contains(&item.0), "inserted twice");
        self.0.push(item.0);
    }

    fn remove(&mut self, item: Item<'_, Counted<'_>>) {
        let place = self.0.iter().position(|present| *present == item.0);
        self.0.swap_remove(place.expect("removed twice"));
    }
}

/// Threads insert and remove an item each, and look.
fn program<Q: Queue + Sync>(threads: u32, rounds: u32, queue: impl Fn() -> Q) -> impl Fn() {
    eager_program(threads, rounds, EAGER_BELOW, queue)
}

fn eager_program<Q: Queue + Sync>(
    threads: u32,
    rounds: u32,
    eager_below: u64,
    queue: impl Fn() -> Q,
) -> impl Fn() {
    move || {
        let alive = Cell::new(0);
        {
            let set: Deferred<Present, Counted<'_>, Q, Futex> =
                Deferred::with_queue(Present::default(), queue()).eager_below(eager_below);
            let looks = |me: u32, expected: bool| {
                let seen = set.read(|present| present.0.contains(&me));
                assert_eq!(seen, expected, "a read misses an update of its own thread");
            };
            let kept = thread::parallel(threads, |me| {
                if me == 0 {
                    (0..rounds).for_each(|_| set.synchronize());
                    return None;
                }
                alive.set(alive.get() + 1);
                let mut item = set.item(Counted(me, &alive)).insert();
                for round in 0..rounds {
                    item = item.remove().insert();
                    if (me + round) % 2 == 0 {
                        looks(me, true);
                    }
                }
                let item = item.remove();
                if me % 2 == 0 {
                    looks(me, false);
                }
                Some(item.insert()).filter(|_| me == 1)
            });
            assert_eq!(set.read(|present| present.0.clone()), [1], "the last update wins");
            drop(kept);
        }
        assert_eq!(alive.get(), 0, "what is dropped dies, and once");
    }
}

#[test]
fn global() {
    explore().check(program(2, 2, Global::new));
    explore().check(program(3, 2, Global::new));
}

#[test]
fn at_once() {
    explore().check(eager_program(2, 2, u64::MAX, Global::new));
    explore().check(eager_program(3, 2, u64::MAX, PerCore::new));
}

#[test]
fn per_core() {
    explore().check(program(3, 2, PerCore::new));
}

#[test]
fn rooted() {
    explore().check(program(3, 2, || Rooted::new(Box::new(Table::new(1)))));
}

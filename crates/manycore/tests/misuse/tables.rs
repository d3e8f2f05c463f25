//! LDU tables that structures share: structures that come, go and are forgotten while others are at
//! the same place, and items whose destructors use other structures of the table.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::thread;

use manycore::ldu::{Deferred, Item, Present, Rooted, Structure, Table, TablePointer};
use manycore::lock::Adaptive;

use crate::live::{Live, live};

/// How many there are, and the sum of their numbers.
#[derive(Default)]
struct Sum(u64, u64);

impl Structure<Live> for Sum {
    fn insert(&mut self, item: Item<'_, Live>) {
        *self = Self(self.0 + 1, self.1 + *item.number);
    }

    fn remove(&mut self, item: Item<'_, Live>) {
        *self = Self(self.0 - 1, self.1 - *item.number);
    }
}

type Summed<P> = Deferred<Sum, Live, Rooted<P>, Adaptive>;

fn summed<P: TablePointer>(table: P) -> Summed<P> {
    Deferred::with_queue(Sum::default(), Rooted::new(table)).eager_below(0)
}

fn sum<P: TablePointer>(of: &Summed<P>) -> (u64, u64) {
    of.read(|sum| (sum.0, sum.1))
}

/// Structures at one place, which take it over from each other; each ends while the others have
/// entries there.
#[test]
fn structures_at_one_place() {
    let table = Table::new(0);
    let leaked = live(|| {
        thread::scope(|s| {
            for thread in 0..4 {
                let table = &table;
                s.spawn(move || {
                    for round in 0..crate::ROUNDS / 10 + 1 {
                        let (mine, other) = (summed(table), summed(table));
                        let of_mine: Vec<_> =
                            (0..9).map(|n| mine.item(Live::new(n)).insert()).collect();
                        let of_other = other.item(Live::new(thread)).insert();
                        let again = mine.item(Live::new(round)).insert().remove().insert();
                        assert_eq!(sum(&mine), (10, 36 + round));
                        drop(of_mine);
                        assert_eq!((sum(&other), sum(&mine)), ((1, thread), (1, round)));
                        drop(again);
                        if round % 2 == 0 {
                            drop(mine); // with an entry that says so
                            drop(of_other);
                        } else {
                            drop(of_other);
                            drop(other);
                        }
                    }
                });
            }
        });
    });
    assert_eq!(leaked, 0);
}

/// A program forgets a structure that has entries. The entries are lost with it. A thread that
/// later gets the same index in a table finds only its own entries.
#[test]
fn structures_that_are_forgotten() {
    let table = Table::new(1);
    let leaked = live(|| {
        for round in 0..crate::ROUNDS / 10 + 1 {
            let lost = summed(&table);
            lost.item(Live::new(round)).insert().keep();
            drop(lost.item(Live::new(round)).insert());
            std::mem::forget(lost.item(Live::new(round)));
            std::mem::forget(lost);
            std::mem::forget(Rooted::new(&table));
            let next = summed(&table);
            let present = next.item(Live::new(7)).insert();
            assert_eq!(sum(&next), (1, 7));
            drop(present);
            assert_eq!(sum(&next), (0, 0));
        }
    });
    assert!(leaked > 0);
}

/// Items that are forgotten stay as they are.
#[test]
fn items_that_are_forgotten() {
    let table = Arc::new(Table::new(1));
    let leaked = live(|| {
        let one = summed(Arc::clone(&table));
        std::mem::forget(one.item(Live::new(1)));
        std::mem::forget(one.item(Live::new(2)).insert());
        std::mem::forget(one.item(Live::new(3)).insert().remove());
        std::mem::forget(one.item(Live::new(4)).insert().remove().insert());
        assert_eq!(sum(&one), (2, 6));
        let mut edited = one.item(Live::new(5)).insert().remove();
        let panics = || edited.edit(|_| panic!("the change"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        edited.edit(|item| *item.number = 50);
        let edited = edited.insert();
        assert_eq!(sum(&one), (3, 56));
        assert_eq!(*edited.remove().into_inner().number, 50);
        drop(table); // the structure has the table, too
        assert_eq!(sum(&one), (2, 6));
    });
    assert_eq!(leaked, 4);
}

/// Owners of items end on other threads, whose places in the table are others.
#[test]
fn items_of_other_threads() {
    let table = Table::new(1);
    let leaked = live(|| {
        let (one, other) = (summed(&table), summed(&table));
        for round in 0..crate::ROUNDS / 10 + 1 {
            let items: Vec<Present<'_, _, _, _, _>> =
                (0..8).map(|n| [&one, &other][n % 2].item(Live::new(round)).insert()).collect();
            thread::scope(|s| {
                for item in items {
                    s.spawn(move || match round % 3 {
                        0 => drop(item),
                        1 => drop(item.remove()),
                        _ => drop(item.remove().insert()),
                    });
                }
                s.spawn(|| one.synchronize());
            });
            assert_eq!((sum(&one), sum(&other)), ((0, 0), (0, 0)));
        }
    });
    assert_eq!(leaked, 0);
}

type Logged = Deferred<Count, Uses, Rooted<Arc<Table>>, Adaptive>;

#[derive(Default)]
struct Count(u64);

/// At its end, and where it is inserted and removed, uses a structure of the table: its own, or the
/// next.
struct Uses {
    which: Weak<Logged>,
    depth: u32,
}

impl Uses {
    fn now(&self) {
        let Some(structure) = self.which.upgrade().filter(|_| self.depth > 0) else { return };
        let next = || Self { which: Weak::clone(&self.which), depth: self.depth - 1 };
        drop(structure.item(next()).insert());
        drop(structure.item(next()));
        structure.synchronize_if_due(0);
    }
}

impl Structure<Uses> for Count {
    fn insert(&mut self, item: Item<'_, Uses>) {
        self.0 += 1;
        item.now();
    }

    fn remove(&mut self, item: Item<'_, Uses>) {
        self.0 -= 1;
        item.now();
    }
}

impl Drop for Uses {
    fn drop(&mut self) {
        self.now();
    }
}

/// A callback that runs under a structure's lock logs in the same structure, or in another at the
/// same place.
#[test]
fn items_that_use_their_table() {
    for eager in [0, u64::MAX] {
        let table = Arc::new(Table::new(1));
        let make = || {
            let queue = Rooted::new(Arc::clone(&table));
            Arc::new(Logged::with_queue(Count::default(), queue).eager_below(eager))
        };
        let (one, other) = (make(), make());
        thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    for round in 0..crate::ROUNDS / 4 + 1 {
                        let [mine, which] =
                            if round % 2 == 0 { [&one, &one] } else { [&one, &other] };
                        let which = Arc::downgrade(which);
                        let item = mine.item(Uses { which, depth: 2 }).insert();
                        if round % 4 == 0 {
                            mine.synchronize();
                        }
                        drop(item.remove().insert());
                    }
                });
            }
        });
        // What is applied may log more.
        (0..8).for_each(|_| [&one, &other].into_iter().for_each(|each| each.synchronize()));
        assert_eq!((one.read(|count| count.0), other.read(|count| count.0)), (0, 0));
        drop(one);
        drop(other);
        assert_eq!(Arc::strong_count(&table), 1);
    }
}

/// A table of one thread's, and structures that end in any order.
#[test]
fn tables_of_one_thread() {
    let leaked = live(|| {
        let table = Rc::new(Table::new(1));
        let (one, other) = (summed(Rc::clone(&table)), summed(table));
        let item = one.item(Live::new(1)).insert();
        other.item(Live::new(2)).insert().keep();
        drop(other);
        assert_eq!(sum(&one), (1, 1));
        drop(item);
    });
    assert_eq!(leaked, 1, "the one that is kept");
}

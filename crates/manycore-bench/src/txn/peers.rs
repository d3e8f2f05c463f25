//! The alternative for a program: the standard library's trees under locks.
//!
//! | name | what it is |
//! |---|---|
//! | `rwlock` | one `parking_lot::RwLock` for all |
//! | `shards` | one for each of 64 parts, which a transaction takes in their order |
//!
//! `shards` knows before a transaction begins which parts it is going to use: a program does not
//! always.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use manycore::sync::CachePadded;
use manycore_traits::Conflict;
use parking_lot::RwLock;

use super::database::{
    Changes, Contender, Database, Order, Parts, Row, Rows, Session, TABLES, Table,
};
use super::{tpcc, ycsb};

/// All of them.
pub(crate) const CONTENDERS: &[Contender] = &[
    Contender { name: "rwlock", make: |_| Box::new(Locked::<1>::default()) },
    Contender { name: "shards", make: |_| Box::new(Locked::<{ Parts::COUNT }>::default()) },
];

/// The tables of a part.
type Tables = [BTreeMap<u64, Row>; TABLES];

/// `LOCKS` locks: one for each part, or one for all.
struct Locked<const LOCKS: u64>(Box<[CachePadded<RwLock<Tables>>]>);

impl<const LOCKS: u64> Default for Locked<LOCKS> {
    fn default() -> Self {
        Self((0..LOCKS).map(|_| CachePadded::default()).collect())
    }
}

impl<const LOCKS: u64> Database for Locked<LOCKS> {
    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(self)
    }
}

impl<const LOCKS: u64> Session for &Locked<LOCKS> {
    fn transact(
        &mut self,
        parts: Parts,
        work: &mut dyn FnMut(&mut dyn Changes) -> Result<(), Conflict>,
    ) {
        let mut held = Held::<_, LOCKS>::new(parts, |lock| self.0[lock as usize].write());
        work(&mut held).expect("no other thread uses what is locked");
    }

    fn read(&mut self, parts: Parts, work: &mut dyn FnMut(&dyn Rows)) {
        work(&Held::<_, LOCKS>::new(parts, |lock| self.0[lock as usize].read()));
    }
}

/// The tables whose locks a transaction holds, by the locks' numbers.
struct Held<G, const LOCKS: u64>(Vec<(u64, G)>);

impl<G, const LOCKS: u64> Held<G, LOCKS> {
    /// Takes the locks of some parts, in their order.
    fn new(parts: Parts, take: impl Fn(u64) -> G) -> Self {
        let mut held = Vec::new();
        let numbers = parts.numbers().map(|number| number % LOCKS);
        for lock in numbers {
            // With one lock, all parts have that.
            if held.last().is_none_or(|(last, _)| *last != lock) {
                held.push((lock, take(lock)));
            }
        }
        Self(held)
    }

    /// The index of a row's tables among the held ones.
    fn place(&self, table: Table, key: u64) -> usize {
        let part = match table {
            // It is in all parts.
            Table::Item => return 0,
            Table::Record => ycsb::part(key),
            _ => tpcc::part(table, key),
        };
        let lock = part % Parts::COUNT % LOCKS;
        let place = self.0.iter().position(|(held, _)| *held == lock);
        place.expect("a transaction uses the parts that it has named")
    }
}

impl<G: Deref<Target = Tables>, const LOCKS: u64> Rows for Held<G, LOCKS> {
    fn get(&self, table: Table, key: u64) -> Option<Row> {
        self.0[self.place(table, key)].1[table as usize].get(&key).copied()
    }

    fn scan(
        &self,
        table: Table,
        (from, to): (u64, u64),
        order: Order,
        visit: &mut dyn FnMut(u64, &Row) -> bool,
    ) {
        let mut entries = self.0[self.place(table, from)].1[table as usize].range(from..to);
        let mut visit = |(key, row): (&u64, &Row)| visit(*key, row);
        match order {
            Order::Up => _ = entries.all(&mut visit),
            Order::Down => _ = entries.rev().all(&mut visit),
        }
    }
}

impl<G: DerefMut<Target = Tables>, const LOCKS: u64> Changes for Held<G, LOCKS> {
    fn set(&mut self, table: Table, key: u64, row: Row) -> Result<(), Conflict> {
        let place = self.place(table, key);
        let all = if table == Table::Item { 0..self.0.len() } else { place..place + 1 };
        for (_, tables) in &mut self.0[all] {
            tables[table as usize].insert(key, row);
        }
        Ok(())
    }
}

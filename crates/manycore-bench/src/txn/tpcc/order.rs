//! A new order: clause 2.4.2 of TPC-C.

use manycore_traits::Conflict;

use super::keys::{District, stock};
use crate::txn::database::{Changes, Parts, Row, Session, Table};

/// The most lines of an order.
pub(super) const LINES_MAX: usize = 15;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    pub item: u64,
    /// The warehouse from which it comes.
    pub supplier: u64,
    pub quantity: u64,
}

#[derive(Clone, Debug)]
pub(in crate::txn) struct Order {
    pub(super) district: District,
    pub(super) customer: u64,
    pub(super) lines: [Line; LINES_MAX],
    pub(super) count: usize,
}

impl Order {
    /// Enters the order; returns false without any change if it has an unknown item.
    pub fn run(&self, session: &mut dyn Session) -> bool {
        let mut parts = Parts::default();
        parts.add(self.district.warehouse);
        self.lines().iter().for_each(|line| parts.add(line.supplier));
        let mut is_taken = false;
        session.transact(parts, &mut |rows| {
            is_taken = self.transact(rows)?;
            Ok(())
        });
        is_taken
    }

    fn lines(&self) -> &[Line] {
        &self.lines[..self.count]
    }

    fn transact(&self, rows: &mut dyn Changes) -> Result<bool, Conflict> {
        let Self { district, customer, .. } = *self;
        let mut prices = [0; LINES_MAX];
        for (price, line) in prices.iter_mut().zip(self.lines()) {
            let Some([known, ..]) = rows.get(Table::Item, line.item) else { return Ok(false) };
            *price = known;
        }
        let found = "a district has a warehouse and customers";
        std::hint::black_box(rows.get(Table::Warehouse, district.warehouse).expect(found));
        std::hint::black_box(rows.get(Table::Customer, district.customer(customer)).expect(found));
        let [paid, tax, order, _] = rows.get(Table::District, district.key()).expect(found);
        rows.set(Table::District, district.key(), [paid, tax, order + 1, 0])?;
        rows.set(Table::Order, district.order(order), [customer, self.count as u64, 0, 0])?;
        rows.set(Table::OrderOf, district.order_of(customer, order), [0; 4])?;
        rows.set(Table::Undelivered, district.order(order), [0; 4])?;
        for (number, (line, price)) in self.lines().iter().zip(prices).enumerate() {
            let key = stock(line.supplier, line.item);
            let old = rows.get(Table::Stock, key).expect("a warehouse has every item");
            rows.set(Table::Stock, key, line.taken_from(old, district.warehouse))?;
            let row = [line.item, line.supplier, line.quantity, line.quantity * price];
            rows.set(Table::Line, district.line(order, number as u64), row)?;
        }
        Ok(true)
    }
}

impl Line {
    /// The stock after the order; it is replenished when it runs low.
    fn taken_from(self, [quantity, sold, orders, remote]: Row, home: u64) -> Row {
        let left = match quantity.checked_sub(self.quantity) {
            Some(left) if left >= 10 => left,
            _ => quantity + 91 - self.quantity,
        };
        let is_remote = u64::from(self.supplier != home);
        [left, sold + self.quantity, orders + 1, remote + is_remote]
    }
}

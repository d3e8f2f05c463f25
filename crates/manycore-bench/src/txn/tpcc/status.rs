//! Transactions that only read: the status of a customer's last order (clause 2.6.2 of TPC-C), and
//! the number of recently ordered items with a low stock (2.8.2).

use std::collections::BTreeSet;

use super::customer::Named;
use super::keys::{District, order_of, stock};
use crate::txn::database::{Order, Parts, Rows, Session, Table};

#[derive(Clone, Debug)]
pub(in crate::txn) struct Status {
    pub(super) district: District,
    pub(super) of: Named,
}

#[derive(Clone, Debug)]
pub(in crate::txn) struct Level {
    pub(super) district: District,
    /// Fewer of an item are too few.
    pub(super) below: u64,
}

/// Orders that are lately.
const LATELY: u64 = 20;

impl Status {
    pub fn run(&self, session: &mut dyn Session) {
        let mut parts = Parts::default();
        parts.add(self.district.warehouse);
        session.read(parts, &mut |rows| _ = std::hint::black_box(self.read(rows)));
    }

    /// What the last order costs, if there is one.
    fn read(&self, rows: &dyn Rows) -> Option<u64> {
        let Self { district, of } = *self;
        let customer = of.customer(district, rows)?;
        std::hint::black_box(rows.get(Table::Customer, district.customer(customer)));
        let range = (district.order_of(customer, 0), district.order_of(customer + 1, 0));
        let mut last = None;
        rows.scan(Table::OrderOf, range, Order::Down, &mut |key, _| {
            last = Some(order_of(key));
            false
        });
        let order = last?;
        let mut sum = 0;
        let range = (district.line(order, 0), district.line(order + 1, 0));
        rows.scan(Table::Line, range, Order::Up, &mut |_, [.., amount]| {
            sum += amount;
            true
        });
        Some(sum)
    }
}

impl Level {
    pub fn run(&self, session: &mut dyn Session) {
        let mut parts = Parts::default();
        parts.add(self.district.warehouse);
        session.read(parts, &mut |rows| _ = std::hint::black_box(self.read(rows)));
    }

    /// How many items are low.
    fn read(&self, rows: &dyn Rows) -> usize {
        let district = self.district;
        let [_, _, next, _] = rows.get(Table::District, district.key()).unwrap_or_default();
        let range = (district.line(next.saturating_sub(LATELY), 0), district.line(next, 0));
        let mut items = BTreeSet::new();
        rows.scan(Table::Line, range, Order::Up, &mut |_, [item, ..]| {
            items.insert(*item);
            true
        });
        let is_low = |item: &&u64| {
            let row = rows.get(Table::Stock, stock(district.warehouse, **item));
            row.is_some_and(|[quantity, ..]| quantity < self.below)
        };
        items.iter().filter(is_low).count()
    }
}

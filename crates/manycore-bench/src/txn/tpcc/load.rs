//! What is there at the start.

use super::keys::{DISTRICTS, District, NAMES, stock};
use crate::txn::database::{Parts, Row, Session, Table};
use crate::txn::task::{Size, Task};

/// Lines of an order at the start.
const LINES: u64 = 10;

/// Puts in all rows: of each customer one order.
pub(in crate::txn) fn fill(session: &mut dyn Session, task: &Task, between: &mut dyn FnMut()) {
    let Size { warehouses, items, .. } = task.size;
    let mut random = fastrand::Rng::with_seed(!task.seed);
    let mut put = |table, key, row: Row| {
        session.transact(Parts::ALL, &mut |rows| rows.set(table, key, row));
        between();
    };
    for item in 0..items {
        put(Table::Item, item, [random.u64(100..=10_000), 0, 0, 0]);
    }
    for warehouse in 0..warehouses {
        put(Table::Warehouse, warehouse, [0, random.u64(..2_000), 0, 0]);
        for item in 0..items {
            put(Table::Stock, stock(warehouse, item), [random.u64(10..=100), 0, 0, 0]);
        }
        for number in 0..DISTRICTS {
            let district = District { warehouse, number };
            fill_district(district, task.size, &mut random, &mut put);
        }
    }
}

fn fill_district(
    district: District,
    size: Size,
    random: &mut fastrand::Rng,
    put: &mut impl FnMut(Table, u64, Row),
) {
    let Size { items, customers, .. } = size;
    put(Table::District, district.key(), [0, random.u64(..2_000), customers, 0]);
    for customer in 0..customers {
        let name = if customer < NAMES { customer } else { random.u64(..NAMES) };
        put(Table::Customer, district.customer(customer), [0, 0, 0, name]);
        put(Table::Name, district.name(name, customer), [0; 4]);
        // Orders have numbers as their customers do.
        let order = customer;
        put(Table::Order, district.order(order), [customer, LINES, 0, 0]);
        put(Table::OrderOf, district.order_of(customer, order), [0; 4]);
        put(Table::Undelivered, district.order(order), [0; 4]);
        for line in 0..LINES {
            let row = [random.u64(..items), district.warehouse, 5, 0];
            put(Table::Line, district.line(order, line), row);
        }
    }
}

//! Keys and fields of the tables.
//!
//! | table | key, the first bits first | fields |
//! |---|---|---|
//! | `Warehouse` | warehouse | paid, tax |
//! | `District` | warehouse, district | paid, tax, next order |
//! | `Item` | item | price |
//! | `Stock` | warehouse, item | quantity, sold, orders, orders from elsewhere |
//! | `Customer` | warehouse, district, customer | balance, paid, payments, name |
//! | `Name` | warehouse, district, name, customer | - |
//! | `Order` | warehouse, district, order | customer, lines |
//! | `OrderOf` | warehouse, district, customer, order | - |
//! | `Undelivered` | warehouse, district, order | - |
//! | `Line` | warehouse, district, order, line | item, supplier, quantity, amount |
//! | `History` | warehouse, district, number | customer's district, customer, amount |
//!
//! Money is in cents; a balance is a signed number.

use crate::txn::database::Table;

/// Districts of a warehouse.
pub(in crate::txn) const DISTRICTS: u64 = 10;

/// Last names.
pub(super) const NAMES: u64 = 1_000;

/// The bits that follow a district in the keys of a table.
pub(super) const AFTER_DISTRICT: u32 = 40;

/// The bits of an order's number.
const ORDER: u32 = 24;

/// A district, by its warehouse and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::txn) struct District {
    pub warehouse: u64,
    pub number: u64,
}

impl District {
    pub fn key(self) -> u64 {
        self.warehouse << 4 | self.number
    }

    /// The range of keys of this district's rows, in a table that has one row or more for each
    /// district.
    fn rows(self, rest: u64) -> u64 {
        debug_assert!(rest >> AFTER_DISTRICT == 0, "{rest} is no part of a key");
        self.key() << AFTER_DISTRICT | rest
    }

    pub fn customer(self, customer: u64) -> u64 {
        self.rows(customer)
    }

    pub fn name(self, name: u64, customer: u64) -> u64 {
        self.rows(name << 16 | customer)
    }

    pub fn order(self, order: u64) -> u64 {
        self.rows(order)
    }

    pub fn order_of(self, customer: u64, order: u64) -> u64 {
        self.rows(customer << ORDER | order)
    }

    pub fn line(self, order: u64, line: u64) -> u64 {
        self.rows(order << 4 | line)
    }

    pub fn history(self, number: u64) -> u64 {
        self.rows(number)
    }
}

/// The customer in a key of `Name`.
pub(super) fn customer_of(key: u64) -> u64 {
    key & 0xffff
}

/// The order in a key of `OrderOf`.
pub(super) fn order_of(key: u64) -> u64 {
    key & ((1 << ORDER) - 1)
}

/// The order in a key of `Order`.
pub(super) fn number_of(key: u64) -> u64 {
    key & ((1 << AFTER_DISTRICT) - 1)
}

pub(super) fn stock(warehouse: u64, item: u64) -> u64 {
    warehouse << 32 | item
}

/// The part of a row, which is its warehouse.
pub(in crate::txn) fn part(table: Table, key: u64) -> u64 {
    match table {
        Table::Record | Table::Item => 0,
        Table::Warehouse => key,
        Table::District => key >> 4,
        Table::Stock => key >> 32,
        _ => key >> (AFTER_DISTRICT + 4),
    }
}

/// The index of a hot row: one that almost every transaction of its warehouse changes. `None` for
/// other rows.
pub(in crate::txn) fn hot(table: Table, key: u64) -> Option<u64> {
    match table {
        Table::Warehouse => Some(key * (DISTRICTS + 1)),
        Table::District => Some((key >> 4) * (DISTRICTS + 1) + 1 + (key & 15)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_warehouse_are_in_its_part_and_in_order() {
        let district = District { warehouse: 7, number: 9 };
        let next = District { warehouse: 8, number: 0 };
        for (table, key) in [
            (Table::Customer, district.customer(99)),
            (Table::Name, district.name(999, 65_535)),
            (Table::Order, district.order(1 << 23)),
            (Table::OrderOf, district.order_of(65_535, (1 << 24) - 1)),
            (Table::Line, district.line((1 << 24) - 1, 15)),
        ] {
            assert_eq!(part(table, key), 7, "{table:?}");
            assert!(key < next.customer(0), "{table:?}");
        }
        assert_eq!(part(Table::District, district.key()), 7);
        assert_eq!(part(Table::Stock, stock(7, 99_999)), 7);
        assert_eq!(customer_of(district.name(999, 12)), 12);
        assert_eq!(order_of(district.order_of(12, 345)), 345);
    }

    #[test]
    fn each_hot_row_has_a_number_of_its_own() {
        let of = |warehouse| {
            let districts = (0..DISTRICTS)
                .map(move |number| (Table::District, District { warehouse, number }.key()));
            districts.chain([(Table::Warehouse, warehouse)])
        };
        let numbers = (0..5).flat_map(of).filter_map(|(table, key)| hot(table, key));
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..55).collect::<Vec<_>>());
    }
}

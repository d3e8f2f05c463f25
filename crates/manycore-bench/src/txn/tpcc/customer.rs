//! A customer, by number or last name.

use super::keys::{District, customer_of};
use crate::txn::database::{Order, Rows, Table};

/// How a transaction names a customer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    Number(u64),
    LastName(u64),
}

impl Named {
    /// The customer's number. Of several customers with one last name, it is the one in the middle.
    pub(super) fn customer(self, of: District, rows: &(impl Rows + ?Sized)) -> Option<u64> {
        let name = match self {
            Self::Number(number) => return Some(number),
            Self::LastName(name) => name,
        };
        let mut customers = Vec::new();
        let range = (of.name(name, 0), of.name(name + 1, 0));
        rows.scan(Table::Name, range, Order::Up, &mut |key, _| {
            customers.push(customer_of(key));
            true
        });
        customers.get(customers.len() / 2).copied()
    }
}

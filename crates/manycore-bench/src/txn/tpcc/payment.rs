//! A payment: clause 2.5.2 of TPC-C.

use manycore_traits::Conflict;

use super::draw::Named;
use super::keys::{District, customer_of};
use crate::txn::database::{Changes, Order, Parts, Rows, Session, Table};

#[derive(Clone, Debug)]
pub(in crate::txn) struct Payment {
    /// Where it is paid.
    pub(super) to: District,
    /// The customer's district.
    pub(super) of: District,
    pub(super) by: Named,
    pub(super) amount: u64,
    /// What the row about it is called: a number of [`AFTER_DISTRICT`](super::keys::AFTER_DISTRICT) bits, of which no two are likely to
    /// be the same.
    pub(super) number: u64,
}

impl Payment {
    pub fn run(&self, session: &mut dyn Session) {
        let mut parts = Parts::default();
        parts.add(self.to.warehouse);
        parts.add(self.of.warehouse);
        session.transact(parts, &mut |rows| self.transact(rows));
    }

    fn transact(&self, rows: &mut dyn Changes) -> Result<(), Conflict> {
        let Self { to, of, by, amount, number } = *self;
        let found = "a district has a warehouse and customers";
        let mut warehouse = rows.get(Table::Warehouse, to.warehouse).expect(found);
        warehouse[0] += amount;
        rows.set(Table::Warehouse, to.warehouse, warehouse)?;
        let mut district = rows.get(Table::District, to.key()).expect(found);
        district[0] += amount;
        rows.set(Table::District, to.key(), district)?;
        let customer = by.customer(of, rows).expect(found);
        let key = of.customer(customer);
        let [balance, paid, payments, name] = rows.get(Table::Customer, key).expect(found);
        let row = [balance.wrapping_sub(amount), paid + amount, payments + 1, name];
        rows.set(Table::Customer, key, row)?;
        rows.set(Table::History, to.history(number), [of.key(), customer, amount, 0])
    }
}

impl Named {
    /// The customer's number: of those with a last name, the one in the middle.
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

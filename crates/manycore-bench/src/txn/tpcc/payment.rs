//! A payment: clause 2.5.2 of TPC-C.

use manycore_traits::Conflict;

use super::customer::Named;
use super::keys::District;
use crate::txn::database::{Changes, Parts, Session, Table};

#[derive(Clone, Debug)]
pub(in crate::txn) struct Payment {
    /// Where it is paid.
    pub(super) to: District,
    /// The customer's district.
    pub(super) of: District,
    pub(super) by: Named,
    pub(super) amount: u64,
    /// The number in the key of the payment's row. Two payments of a district are unlikely to have
    /// the same one.
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

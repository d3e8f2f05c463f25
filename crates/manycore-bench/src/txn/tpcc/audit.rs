//! Conditions that hold at every moment: clauses 3.3.2.1 to 3.3.2.4 of TPC-C.

use super::keys::{DISTRICTS, District, number_of};
use crate::txn::database::{Order, Parts, Rows, Session, Table};
use crate::txn::task::Task;

/// The number of recent orders of a district whose lines are counted while transactions run.
const LATELY: u64 = 20;

/// Reads a warehouse at one moment, and the last orders of its districts. Returns the fault, if
/// there is one.
pub(super) fn look(session: &mut dyn Session, warehouse: u64) -> Option<String> {
    look_at(session, warehouse, LATELY)
}

/// Whether all conditions hold, of all orders.
pub(in crate::txn) fn verify(
    session: &mut dyn Session,
    task: &Task,
    between: &mut dyn FnMut(),
) -> Result<(), String> {
    for warehouse in 0..task.size.warehouses {
        if let Some(fault) = look_at(session, warehouse, u64::MAX) {
            return Err(fault);
        }
        between();
    }
    Ok(())
}

fn look_at(session: &mut dyn Session, warehouse: u64, lately: u64) -> Option<String> {
    let mut parts = Parts::default();
    parts.add(warehouse);
    let mut fault = None;
    session.read(parts, &mut |rows| {
        let of_districts = (0..DISTRICTS)
            .find_map(|number| district(rows, District { warehouse, number }, lately));
        fault = paid(rows, warehouse).or(of_districts);
    });
    fault
}

/// Checks that the sum of payments of a warehouse equals that of its districts.
fn paid(rows: &dyn Rows, warehouse: u64) -> Option<String> {
    let paid = |table, key| rows.get(table, key).map_or(0, |[paid, ..]| paid);
    let all = paid(Table::Warehouse, warehouse);
    let district = |number| paid(Table::District, District { warehouse, number }.key());
    let sum: u64 = (0..DISTRICTS).map(district).sum();
    (all != sum).then(|| {
        format!("warehouse {warehouse} was paid {all} cents at a moment, and its districts {sum}")
    })
}

/// Checks that the last order of a district, in both tables, is the one before its next order, and
/// that its last orders have as many lines as they declare.
fn district(rows: &dyn Rows, district: District, lately: u64) -> Option<String> {
    let [_, _, next, _] = rows.get(Table::District, district.key())?;
    let mut last = [None; 2];
    for (last, table) in last.iter_mut().zip([Table::Order, Table::Undelivered]) {
        let range = (district.order(0), district.order(u64::from(u32::MAX)));
        rows.scan(table, range, Order::Down, &mut |key, _| {
            *last = Some(number_of(key));
            false
        });
    }
    if last != [next.checked_sub(1); 2] {
        return Some(format!("{district:?}: the next order is {next}, the last ones are {last:?}"));
    }
    let first = next.saturating_sub(lately);
    let (mut told, mut lines) = (0, 0);
    let orders = (district.order(first), district.order(next));
    rows.scan(Table::Order, orders, Order::Up, &mut |_, [_, count, ..]| {
        told += count;
        true
    });
    let range = (district.line(first, 0), district.line(next, 0));
    rows.scan(Table::Line, range, Order::Up, &mut |_, _| {
        lines += 1;
        true
    });
    (told != lines)
        .then(|| format!("{district:?}: orders have {told} lines, and there are {lines}"))
}

//! Orders and payments: four of the transactions of TPC-C, revision 5.11.
//!
//! | module | what is in it |
//! |---|---|
//! | `keys` | the tables' keys and fields |
//! | `load` | what is there at the start |
//! | `customer` | a customer, by number or last name |
//! | `draw` | which transactions, with which input |
//! | `order`, `payment` | those that change rows |
//! | `status` | those that read: the status of an order, the level of the stock |
//! | `audit` | conditions that hold at every moment |
//!
//! Rows have the fields that transactions compute with; texts are left out. There is no delivery,
//! so out of 100 transactions 47 are orders, 45 are payments, and 4 each are the two that only
//! read. In addition, one in a hundred is an audit, which the benchmark does not have. A database
//! under snapshot isolation runs these transactions as if one came after the other (A. Fekete and
//! others, "Making Snapshot Isolation Serializable", TODS 2005).

mod audit;
mod customer;
mod draw;
mod keys;
mod load;
mod order;
mod payment;
mod status;

pub(super) use audit::verify;
pub(super) use draw::{Draws, Input};
pub(super) use keys::{DISTRICTS, hot, part};
pub(super) use load::fill;

use super::database::Session;

/// What has come of a transaction.
pub(super) enum Outcome {
    Done,
    /// An order that was not taken.
    GivenUp,
    /// Conditions were looked at; what was wrong.
    Audited(Option<String>),
}

/// Runs a transaction.
pub(super) fn run(session: &mut dyn Session, input: &Input) -> Outcome {
    match input {
        Input::Order(order) if !order.run(session) => return Outcome::GivenUp,
        Input::Order(_) => {}
        Input::Payment(payment) => payment.run(session),
        Input::Status(status) => status.run(session),
        Input::Level(level) => level.run(session),
        Input::Audit(warehouse) => return Outcome::Audited(audit::look(session, *warehouse)),
    }
    Outcome::Done
}

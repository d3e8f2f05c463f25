//! One thread's operations on a database, drawn the same way for real and for simulated machines.

use super::database::Session;
use super::task::{Mix, Task};
use super::{tpcc, ycsb};
use crate::popularity::Ranks;

/// A transaction.
pub(crate) enum Transaction {
    Requests(ycsb::Requests),
    Tpcc(tpcc::Input),
}

impl Transaction {
    /// Whether it changes the database.
    pub fn updates(&self) -> bool {
        match self {
            Self::Requests(requests) => requests.iter().any(|(_, writes)| *writes),
            Self::Tpcc(input) => input.updates(),
        }
    }
}

/// What a thread draws from.
pub(crate) struct Draws(Kind);

enum Kind {
    Ycsb(ycsb::Draws),
    Tpcc(tpcc::Draws),
}

impl Draws {
    /// The transactions of a thread, by its number.
    pub fn new(task: &Task, thread: u32, ranks: &Ranks) -> Self {
        let seed = task.seed.wrapping_mul(1 << 32).wrapping_add(u64::from(thread));
        Self(match task.mix {
            Mix::Ycsb16 => Kind::Ycsb(ycsb::Draws::new(task, seed, ranks)),
            Mix::Tpcc => Kind::Tpcc(tpcc::Draws::new(task, thread, seed)),
        })
    }

    pub fn draw(&mut self) -> Transaction {
        match &mut self.0 {
            Kind::Ycsb(draws) => Transaction::Requests(draws.draw()),
            Kind::Tpcc(draws) => Transaction::Tpcc(draws.draw()),
        }
    }
}

/// What a thread has to tell at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// Additions to records.
    pub added: u64,
    /// Orders that were not taken.
    pub given_up: u64,
    /// Times that conditions were looked at.
    pub audits: u64,
    /// What was wrong then.
    pub fault: Option<String>,
}

impl Tally {
    /// The sum over all threads.
    pub fn sum(tallies: impl IntoIterator<Item = Self>) -> Self {
        tallies.into_iter().fold(Self::default(), |sum, tally| Self {
            added: sum.added + tally.added,
            given_up: sum.given_up + tally.given_up,
            audits: sum.audits + tally.audits,
            fault: sum.fault.or(tally.fault),
        })
    }
}

/// A thread that runs transactions.
pub(crate) struct Actor<'a> {
    session: Box<dyn Session + 'a>,
    pub tally: Tally,
}

impl<'a> Actor<'a> {
    /// Creates one with a thread's access to a database.
    pub fn new(session: Box<dyn Session + 'a>) -> Self {
        Self { session, tally: Tally::default() }
    }

    /// Inserts the initial rows; calls `between` after each row.
    pub fn fill(&mut self, task: &Task, between: &mut dyn FnMut()) {
        match task.mix {
            Mix::Ycsb16 => ycsb::fill(&mut *self.session, task, between),
            Mix::Tpcc => tpcc::fill(&mut *self.session, task, between),
        }
    }

    /// Runs a transaction.
    pub fn act(&mut self, transaction: &Transaction) {
        match transaction {
            Transaction::Requests(requests) => {
                self.tally.added += ycsb::run(&mut *self.session, requests);
            }
            Transaction::Tpcc(input) => match tpcc::run(&mut *self.session, input) {
                tpcc::Outcome::Done => {}
                tpcc::Outcome::GivenUp => self.tally.given_up += 1,
                tpcc::Outcome::Audited(fault) => {
                    self.tally.audits += 1;
                    self.tally.fault = self.tally.fault.take().or(fault);
                }
            },
        }
    }
}

/// Checks that the database agrees with the threads' results; calls `between` now and then. `added`
/// is the sum of all additions to records.
///
/// The error, in one line, says what is wrong.
pub(crate) fn verify(
    session: &mut dyn Session,
    task: &Task,
    tally: &Tally,
    added: u64,
    between: &mut dyn FnMut(),
) -> Result<(), String> {
    if let Some(fault) = &tally.fault {
        return Err(fault.clone());
    }
    match task.mix {
        Mix::Ycsb16 => ycsb::verify(session, task, added, between),
        Mix::Tpcc => tpcc::verify(session, task, between),
    }
}

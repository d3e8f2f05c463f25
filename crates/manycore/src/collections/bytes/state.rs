//! The threads that a handle keeps out, and its transaction's reports at the end.

use alloc::vec::Vec;

use super::table::Table;
use super::tally::Change;

/// Which other threads the handle keeps from changing records.
pub(super) enum Keeps {
    NoOthers,
    /// The thread holds the gate.
    Others,
    /// The thread holds the gate, and its session is open.
    Transaction(Transaction),
}

/// The changes that a transaction has to report, or to undo, when it ends.
#[derive(Default)]
pub(super) struct Transaction {
    pub change: Change,
    /// Buckets that the transaction has claimed and split off.
    pub split_off: Vec<(*const Table, usize)>,
    /// The number of additional records that the tables already count.
    pub told: Vec<(*const Table, isize)>,
    /// Pairs of tables: the one to which the root led before, and the one to which it leads now.
    pub replaced: Vec<*const Table>,
    pub made: Vec<*const Table>,
    pub has_failed: bool,
    /// Whether this thread already excluded others when the transaction began. Then the
    /// transaction's end does not admit them.
    pub is_inner: bool,
}

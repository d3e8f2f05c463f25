//! Whether transactions saw snapshots, and updated what they had seen.
//!
//! Under *snapshot isolation* a transaction reads, at one instant, what was committed when it took
//! its snapshot, and commits at a later instant. Of two that write the same object, one has
//! committed before the other takes its snapshot. (H. Berenson et al., "A Critique of ANSI SQL
//! Isolation Levels", SIGMOD 1995; the form with edges is that of A. Adya, "Weak Consistency: A
//! Generalized Theory and Optimistic Implementations for Distributed Transactions", MIT 1999.)
//!
//! Each written value is a *version*, a number that is written once; 0 is every object's version at
//! the start. A write names the version that it replaces, so the versions of an object are a chain.
//! This determines the necessary orders: instants are the nodes of a graph, and the history is
//! possible if the graph has no circle.
//!
//! | what is seen | then |
//! |---|---|
//! | `b` reads or replaces a version of `a` | `a` commits before `b` takes its snapshot |
//! | `b` reads a version that `a` replaces | `b` takes its snapshot before `a` commits |
//! | `a` ends before `b` begins, strict | `a` commits before `b`'s snapshot: no commit is missed |
//! | `a` ends before `b` begins, relaxed | `a`'s snapshot is before `b`'s commit: no future |
//!
//! Aborted transactions must have seen snapshots, too. If each of two transactions reads what the
//! other writes, that is a *write skew*: it is possible under snapshot isolation, but not in a
//! serial order.
//!
//! A *crash* of a durable store takes back the last transactions. [`check_crash`] requires that
//! only the last ones are lost, that none of them is lost only in part, and that none of them was
//! acknowledged.
//!
//! ```
//! use manycore_history::history::Clock;
//! use manycore_history::snapshot::{self, Isolation, Transaction};
//!
//! let clock = Clock::new();
//! let mut first = Transaction::begin(&clock, 0);
//! let mut second = Transaction::begin(&clock, 1);
//! first.read(7, 0);
//! second.read(7, 0);
//! first.write(7, 0, 1);
//! second.write(7, 0, 2);
//! let history = [first.commit(&clock), second.commit(&clock)];
//!
//! let found = snapshot::check(&history, Isolation::STRICT).unwrap_err();
//! assert_eq!(found.anomaly, snapshot::Anomaly::LostUpdate);
//! ```

mod crash;
mod explain;
mod graph;
mod versions;

use std::fmt;

pub use crash::check_crash;

use crate::history::Clock;
use graph::Graph;
use versions::Versions;

/// An object, by number.
pub type Object = u64;

/// A value of an object: 0 at the start, later a number that no other write of that object has.
pub type Version = u64;

/// A write of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// What is written.
    pub object: Object,
    /// The version that it replaces.
    pub before: Version,
    /// The version that it makes.
    pub after: Version,
}

/// What a transaction did, from its begin to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The thread.
    pub thread: u32,
    /// A moment before its snapshot.
    pub began: u64,
    /// A moment after its commit, or after it was aborted.
    pub ended: u64,
    /// Whether what it wrote counts.
    pub committed: bool,
    /// Objects and the versions of them that the transaction saw, except versions that it made
    /// itself.
    pub reads: Vec<(Object, Version)>,
    /// What the transaction wrote: each object once, with the last version.
    pub writes: Vec<Write>,
    /// Objects of which the transaction saw another version after it had written them.
    pub lost: Vec<Object>,
}

impl Transaction {
    /// Begins a transaction's record: call it before the transaction takes its snapshot.
    pub fn begin(clock: &Clock, thread: u32) -> Self {
        let began = clock.moment();
        let (reads, writes, lost) = (Vec::new(), Vec::new(), Vec::new());
        Self { thread, began, ended: began, committed: false, reads, writes, lost }
    }

    /// Records what the transaction saw of an object. Its own versions are not recorded.
    pub fn read(&mut self, object: Object, version: Version) {
        match self.writes.iter().find(|write| write.object == object) {
            None => self.reads.push((object, version)),
            Some(write) if write.after == version => {}
            Some(_) => self.lost.push(object),
        }
    }

    /// Records a write. A second write of an object replaces the first.
    pub fn write(&mut self, object: Object, before: Version, after: Version) {
        match self.writes.iter_mut().find(|write| write.object == object) {
            Some(write) if write.after == before => write.after = after,
            _ => self.writes.push(Write { object, before, after }),
        }
    }

    /// Notes that it has committed: call it after that.
    pub fn commit(self, clock: &Clock) -> Self {
        Self { ended: clock.moment(), committed: true, ..self }
    }

    /// Notes that it was aborted: call it after that.
    pub fn abort(self, clock: &Clock) -> Self {
        Self { ended: clock.moment(), ..self }
    }
}

/// What is asked of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// A transaction sees everything that had committed when it began.
    pub strict: bool,
    /// There is a serial order: no write skew.
    pub serializable: bool,
}

impl Isolation {
    /// Snapshots may be old.
    pub const RELAXED: Self = Self { strict: false, serializable: false };
    /// Snapshots are fresh.
    pub const STRICT: Self = Self { strict: true, serializable: false };
    /// Snapshots are fresh, and there is no write skew.
    pub const STRICT_SERIALIZABLE: Self = Self { strict: true, serializable: true };
}

/// A kind of mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// A version was read that no committed transaction has made.
    ReadFromNowhere,
    /// A transaction has not seen what it had written itself.
    LostWrite,
    /// Two transactions have replaced the same version of an object.
    LostUpdate,
    /// A transaction has seen a part of another's commit, and not all of it; or a circle of such
    /// transactions.
    TornRead,
    /// A version was read before the transaction that made it had begun.
    FutureRead,
    /// A transaction has not seen what had committed before it began.
    MissedCommit,
    /// There is no serial order.
    WriteSkew,
    /// A crash has taken back a transaction that was acknowledged.
    LostCommit,
    /// A crash has taken back a transaction, but not one that began after that had ended.
    LostBeforeLeft,
}

/// Transactions that contradict the isolation that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What kind of mistake it is.
    pub anomaly: Anomaly,
    /// The transactions, and how each comes before the next.
    pub steps: Vec<String>,
}

/// What a history is beyond what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether there is a serial order of the transactions that committed.
    pub serializable: bool,
}

/// Looks for mistakes.
///
/// # Errors
///
/// The first mistake found, the simplest kinds first.
///
/// # Panics
///
/// If two writes of an object make the same version, or a transaction ends before it begins: such a
/// record is not a history.
pub fn check(history: &[Transaction], isolation: Isolation) -> Result<Verdict, Violation> {
    assert!(history.iter().all(|t| t.began < t.ended), "a transaction ends before it begins");
    let versions = Versions::of(history)?;
    for level in [Graph::of_snapshots(&versions), Graph::of_snapshots(&versions).with_time(false)] {
        explain::no_circle(&versions, &level)?;
    }
    if isolation.strict {
        explain::no_circle(&versions, &Graph::of_snapshots(&versions).with_time(true))?;
    }
    let serial = explain::no_circle(&versions, &Graph::of_serial_order(&versions));
    let serializable = serial.is_ok();
    if isolation.serializable {
        serial?;
    }
    Ok(Verdict { serializable })
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let what = match self.anomaly {
            Anomaly::ReadFromNowhere => "a version that was never committed",
            Anomaly::LostWrite => "a lost write",
            Anomaly::LostUpdate => "a lost update",
            Anomaly::TornRead => "no snapshot",
            Anomaly::FutureRead => "a look into the future",
            Anomaly::MissedCommit => "a commit that is missed",
            Anomaly::WriteSkew => "a write skew",
            Anomaly::LostCommit => "a commit that a crash has taken back",
            Anomaly::LostBeforeLeft => "a commit that is lost, and a later one that is not",
        };
        writeln!(f, "{what}:")?;
        self.steps.iter().try_for_each(|step| writeln!(f, "  {step}"))
    }
}

impl std::error::Error for Violation {}

//! A transaction's terms: which effects of others it may see, and when its commit returns.

use std::time::Duration;

/// When a commit returns, and what a crash may undo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Returns when the transaction is on the disk. A crash undoes nothing.
    #[default]
    Durable,
    /// Returns when the operating system has the data. If the process is killed, nothing is lost. A
    /// power cut undoes the commits of the last [`Options::window`](super::Options::window) plus
    /// the time of a flush: always the latest transactions.
    Buffered,
    /// Returns immediately. A crash undoes the commits of the last window plus the time of a flush:
    /// always the latest transactions, so none is lost that precedes a surviving one. A transaction
    /// that another thread begins within the uncertainty of the CPUs' clocks, usually below a
    /// microsecond, may not see the commit yet.
    Eventual {
        /// How long the commit may stay in memory before it is written. Other commits, by any
        /// thread, may cause it to be written earlier. With `Duration::MAX`, only these do.
        window: Duration,
    },
}

impl Durability {
    /// [`Eventual`](Self::Eventual), with a window of 10 ms.
    pub const EVENTUAL: Self = Self::Eventual { window: Duration::from_millis(10) };
}

/// What a transaction may have seen of other transactions when it commits.
///
/// Each level holds for the transaction that asks for it. Suppose that two transactions write, one
/// under [`Snapshot`](Self::Snapshot) and one under [`Serializable`](Self::Serializable). The first
/// may still change what the second has read, while the second changes what the first has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// The transaction reads as of its begin. If two transactions change the same object at the
    /// same time, one runs again. If each of two reads what the other changes, both may commit
    /// (write skew).
    #[default]
    Snapshot,
    /// As `Snapshot`; in addition, if the transaction has written something, everything that it has
    /// read is unchanged when it commits. So all such transactions take effect as if they had run
    /// one after the other, in the order of their commits. During its commit the transaction locks
    /// what it has read, until the clocks of all CPUs are past the commit, usually below a
    /// microsecond. So it conflicts more often.
    Serializable,
    /// As `Serializable`, and that order is also the order of time: the transaction sees all
    /// commits that have returned, and every transaction that begins after it has returned sees its
    /// changes. It takes longer by the uncertainty of the CPUs' clocks.
    Linearizable,
}

/// A transaction's terms. The store's [`Options`](super::Options) provide those that are not given.
///
/// ```
/// # use timestone::{Durability, Isolation, Map, Store};
/// # let directory = tempfile::tempdir()?;
/// # let store = Store::open(directory.path())?;
/// # let map: Map<u64, u64> = store.map("numbers")?;
/// # let mut me = store.register()?;
/// me.run_with(Durability::EVENTUAL, |tx| map.insert(tx, 1, 10))?;
/// me.run_with(Isolation::Serializable, |tx| map.insert(tx, 2, 20))?;
/// me.run_with((Durability::EVENTUAL, Isolation::Serializable), |tx| map.insert(tx, 3, 30))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    pub(super) durability: Option<Durability>,
    pub(super) isolation: Option<Isolation>,
}

impl From<Durability> for Terms {
    fn from(durability: Durability) -> Self {
        Self { durability: Some(durability), ..Self::default() }
    }
}

impl From<Isolation> for Terms {
    fn from(isolation: Isolation) -> Self {
        Self { isolation: Some(isolation), ..Self::default() }
    }
}

impl From<(Durability, Isolation)> for Terms {
    fn from((durability, isolation): (Durability, Isolation)) -> Self {
        Self { durability: Some(durability), isolation: Some(isolation) }
    }
}

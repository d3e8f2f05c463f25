//! What a transaction asks for: what it may have seen of others, and when its commit returns.

use std::time::Duration;

/// When a commit returns, and what a crash may take back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the transaction is on the disk. A crash takes back nothing.
    #[default]
    Durable,
    /// When the operating system has it. If the process is killed, nothing is lost; a power cut
    /// takes back what was committed within [`Options::window`](super::Options::window) before it,
    /// and the time of a flush: always the last transactions.
    Buffered,
    /// At once. A crash takes back what was committed within the window before it, and the time of
    /// a flush: always the last transactions, and none before one that stays. A transaction that
    /// another thread begins within the uncertainty of the CPUs' clocks, below a microsecond as a
    /// rule, may not see it yet.
    Eventual {
        /// How long the commit may stay in memory before it is written. Others, by any thread, may
        /// take it along earlier. With `Duration::MAX`, only these do.
        window: Duration,
    },
}

impl Durability {
    /// [`Eventual`](Self::Eventual), with a window of 10 ms.
    pub const EVENTUAL: Self = Self::Eventual { window: Duration::from_millis(10) };
}

/// What a transaction may have seen of others when it commits.
///
/// Each holds for the transaction that asks for it. Of two that write, one under
/// [`Snapshot`](Self::Snapshot) may still change what the other, under
/// [`Serializable`](Self::Serializable), has read, at the same time as the other changes what it
/// has read itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// It reads as of its begin, and of two that change the same object at the same time one runs
    /// again. Two that read what the other changes may both commit (write skew).
    #[default]
    Snapshot,
    /// Likewise; and if it has written something, what it has read is still so when it commits. So
    /// all such transactions are as if they had run one after the other, in the order of their
    /// commits. What one has read, it locks for its commit, and until the clocks of all CPUs are
    /// past that, below a microsecond as a rule: it runs again more often.
    Serializable,
    /// Likewise, and that order is one of time: it sees all commits that have returned, and what
    /// begins after it has returned sees its. Takes the uncertainty of the CPUs' clocks longer.
    Linearizable,
}

/// What a transaction asks for; what is not said is as the store's
/// [`Options`](super::Options) say.
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

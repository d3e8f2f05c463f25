//! What is chosen when a file system is made.

use core::fmt;
use core::str::FromStr;

/// How names are synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sync {
    /// Readers use RCU; writers take a lock for each directory: Linux's design.
    DirLock,
    /// A lock for each chain of a directory. Readers take it as well.
    Lock,
    /// A lock for each chain for writers; readers use RCU.
    Rcu,
    /// Transactions of RLU, whose commits wait for readers.
    Rlu,
    /// Transactions of MV-RLU.
    MvRlu,
}

impl Sync {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::DirLock, Self::Lock, Self::Rcu, Self::Rlu, Self::MvRlu];

    /// Its name at boot and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DirLock => "dirlock",
            Self::Lock => "lock",
            Self::Rcu => "rcu",
            Self::Rlu => "rlu",
            Self::MvRlu => "mvrlu",
        }
    }

    /// Whether a [`Moment`](crate::Moment) is one: all that it shows was there at the same time.
    pub const fn has_moments(self) -> bool {
        matches!(self, Self::Rlu | Self::MvRlu)
    }
}

impl fmt::Display for Sync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no mechanism's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownSync;

impl fmt::Display for UnknownSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sync is one of dirlock, lock, rcu, rlu, mvrlu")
    }
}

impl core::error::Error for UnknownSync {}

impl FromStr for Sync {
    type Err = UnknownSync;

    fn from_str(name: &str) -> Result<Self, UnknownSync> {
        Self::ALL.into_iter().find(|sync| sync.name() == name).ok_or(UnknownSync)
    }
}

/// How calls that only read follow a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Walk {
    /// Each name as of its own look-up, as in Linux. A path may be found that existed at no moment.
    #[default]
    Current,
    /// All names as of one moment, under `rlu` and `mvrlu`.
    Moment,
}

/// What is chosen when a file system is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// How names are synchronised.
    pub sync: Sync,
    /// How calls that only read follow a path.
    pub walk: Walk,
    /// The number of chains of a directory, a power of two: 64. Names in different chains are
    /// created and removed without a common cache line. A directory takes some 96 bytes a chain;
    /// under `rlu` and `mvrlu` only once it has its first name.
    pub chains: usize,
    /// A seed for the hashes of names, so that no user can choose names that all hash to one chain.
    pub seed: u64,
    /// Whether changes are recorded, for keeping the file system on a disk: see
    /// [`Cx::changes`](crate::Cx::changes).
    pub records: bool,
}

impl Options {
    /// With 64 chains a directory.
    pub const fn new(sync: Sync) -> Self {
        Self { sync, walk: Walk::Current, chains: 64, seed: 0, records: false }
    }
}

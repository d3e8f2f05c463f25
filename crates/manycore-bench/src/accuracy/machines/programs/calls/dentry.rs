//! `stat` of one file by all threads: the entry of its name, which all look up and count.

use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicU64, Ordering};

use super::shared::{Part, Shared, count_by_swap};

/// What a lookup reads of an entry: its sequence, its parent, its name and its inode.
#[derive(Default)]
pub(super) struct Read {
    words: [AtomicU64; 4],
}

/// An entry whose users are counted on the line that lookups read.
#[derive(Default)]
pub(super) struct OneLine {
    read: Read,
    users: AtomicU64,
}

/// An entry in Linux' cache of names.
pub(super) enum Dentry {
    /// Until 6.10.
    OneLine(CachePadded<OneLine>),
    /// Since then.
    TwoLines(CachePadded<Read>, CachePadded<AtomicU64>),
}

impl Dentry {
    pub fn with_one_line() -> Self {
        Self::OneLine(CachePadded::default())
    }

    pub fn with_two_lines() -> Self {
        Self::TwoLines(CachePadded::default(), CachePadded::default())
    }

    fn read(&self) -> &Read {
        match self {
            Self::OneLine(line) => &line.read,
            Self::TwoLines(read, _) => read,
        }
    }

    fn users(&self) -> &AtomicU64 {
        match self {
            Self::OneLine(line) => &line.users,
            Self::TwoLines(_, users) => users,
        }
    }
}

impl Shared for Dentry {
    fn knows(&self, part: Part) -> bool {
        part == Part::StatName
    }

    fn stat_name(&self, work: &dyn Fn(f64)) {
        work(0.4);
        for word in &self.read().words {
            // Relaxed: no thread changes them.
            word.load(Ordering::Relaxed);
            work(0.05);
        }
        // As `lockref` does.
        count_by_swap(self.users(), 1);
        work(0.2);
        count_by_swap(self.users(), -1);
        work(0.2);
    }

    fn verify(&self) -> Result<(), String> {
        // Relaxed: all threads have ended.
        match self.users().load(Ordering::Relaxed) {
            0 => Ok(()),
            left => Err(format!("the entry has {left} users, and all are gone")),
        }
    }
}

//! Waits as they are observed, by whatever means, before any names are known.

use crate::sum::Sum;

/// Waits of tasks with one name, at one place, for a lock or for locks that cannot be
/// distinguished.
#[derive(Clone, Debug, PartialEq)]
pub struct Waits {
    /// What is known of the lock itself.
    pub identity: Identity,
    /// What the tracepoint says: bits of [`flag`].
    pub flags: u32,
    /// The tasks' name.
    pub task: String,
    /// Their cgroup's number; zero if it is not known.
    pub cgroup: u64,
    /// The calls, innermost first.
    pub stack: Vec<u64>,
    /// The calls in which the lock's owner was; empty if they are not known.
    pub owner: Vec<u64>,
    /// How many, and how long.
    pub sum: Sum,
}

/// What the tracepoint says of a lock.
pub mod flag {
    /// A waiter spins.
    pub const SPIN: u32 = 1;
    /// To read.
    pub const READ: u32 = 2;
    /// To write.
    pub const WRITE: u32 = 4;
    /// An rt-mutex, or what is made of one.
    pub const RT: u32 = 8;
    /// A percpu-rwsem.
    pub const PERCPU: u32 = 16;
    /// A mutex.
    pub const MUTEX: u32 = 32;
}

/// What is known of a lock itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// Nothing: only its waiters show something about it.
    Unknown,
    /// A variable of the kernel, by its address.
    Variable(u64),
    /// A part of something that the task owns.
    Part(&'static str),
}

/// As numbered in `bpf/contention.bpf.c`.
const PARTS: [&str; 6] = [
    "mm->mmap_lock",
    "sighand->siglock",
    "files->file_lock",
    "task->alloc_lock",
    "task->pi_lock",
    "mm->page_table_lock",
];

impl Identity {
    /// Creates one from the number that the kernel side gave.
    pub fn of(number: u64) -> Self {
        match number.checked_sub(1).and_then(|at| PARTS.get(at as usize)) {
            Some(part) => Self::Part(part),
            None if number == 0 => Self::Unknown,
            None => Self::Variable(number),
        }
    }
}

/// How much was seen in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Waits, dropped ones included.
    pub waits: u64,
    /// How many waits could not be kept.
    pub dropped: u64,
    /// The number of waits whose calls could not be kept.
    pub without_stack: u64,
    /// The number of waits in processes whose maps could not be read: addresses there have no
    /// names.
    pub without_maps: u64,
    /// The number of words on top of stacks that may be calls, but could not be checked because the
    /// process' memory could not be read.
    pub unread: u64,
    /// Waits that had not ended: they count until then.
    pub under_way: u64,
    /// The number of tasks that should have been followed, and could not be.
    pub unfollowed: u64,
}

impl Totals {
    /// What has come since an earlier sample.
    pub fn since(self, before: Self) -> Self {
        let since = |now: u64, before: u64| now.saturating_sub(before);
        Self {
            waits: since(self.waits, before.waits),
            dropped: since(self.dropped, before.dropped),
            without_stack: since(self.without_stack, before.without_stack),
            without_maps: since(self.without_maps, before.without_maps),
            unread: since(self.unread, before.unread),
            under_way: self.under_way,
            unfollowed: since(self.unfollowed, before.unfollowed),
        }
    }
}

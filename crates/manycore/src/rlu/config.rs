//! Parameters of a domain, and the report on who keeps its writers waiting.

use alloc::boxed::Box;
use core::fmt;

/// Parameters of a domain.
pub struct Config {
    /// Commits that a thread may leave to be written back later, all at once. 0: each is written
    /// back before its commit returns, as published.
    pub deferred: usize,
    /// Pauses of up to 1 ms for one session, after which that is reported, and again after as many.
    /// 100.
    pub patience: u32,
    /// Who is told about it.
    pub report: Option<Report>,
}

/// Is told about a session that lasts too long, on the thread that has to wait for it.
pub type Report = Box<dyn Fn(&Stall) + Send + Sync>;

/// A session that keeps a thread from writing back what was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The number of its thread: on Linux, the kernel's.
    pub thread: u32,
    /// For how long the thread that reports has waited, in ticks of the CPU's counter.
    pub waited: u64,
    /// How many objects cannot be changed meanwhile.
    pub objects: usize,
    /// Bytes of their copies.
    pub bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { deferred: 0, patience: 100, report: None }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("deferred", &self.deferred)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

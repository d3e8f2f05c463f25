//! Parameters of a domain, and the report on threads that keep its writers waiting.

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

/// Parameters of a domain.
#[non_exhaustive]
pub struct Config {
    /// Commits that a thread may leave to be written back later, all in one step. 0: each is
    /// written back before its commit returns, as published.
    pub deferred: usize,
    /// A session for which a thread has waited for longer than this is a stall. It is reported
    /// again after as long. 100 ms.
    pub patience: Duration,
    /// Called with such a session, on the thread that waits for it.
    pub on_stall: Option<OnStall>,
}

/// The function that a domain calls with each stall.
pub type OnStall = Box<dyn Fn(&Stall) + Send + Sync>;

/// A session that keeps a thread from writing back its commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// The number of its thread: on Linux, the kernel's.
    pub thread: u32,
    /// For how long the thread that reports has waited. The session has been open for longer.
    pub blocked_for: Duration,
    /// How many objects cannot be changed meanwhile.
    pub objects: usize,
    /// Bytes of their copies.
    pub bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { deferred: 0, patience: Duration::from_millis(100), on_stall: None }
    }
}

impl Config {
    setters! {
        /// Replaces [`Config::deferred`].
        with_deferred: deferred: usize,
        /// Replaces [`Config::patience`].
        with_patience: patience: Duration,
    }

    /// Replaces [`Config::on_stall`].
    #[must_use]
    pub fn with_on_stall(mut self, on_stall: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        self.on_stall = Some(Box::new(on_stall));
        self
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

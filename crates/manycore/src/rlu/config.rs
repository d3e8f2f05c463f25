//! Parameters of a domain, and the report on threads for which its writers wait.

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

/// Parameters of a domain.
#[non_exhaustive]
pub struct Config {
    /// The commits that a thread may leave to be written back later, all in one step. With 0, each
    /// commit is written back before the call returns, as in the paper's basic algorithm.
    pub deferred: usize,
    /// A session for which a thread has waited for longer than this is a stall. The stall is
    /// reported again each time the same duration has passed. The default is 100 ms.
    pub patience: Duration,
    /// The function that the waiting thread calls with a stalled session.
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
    /// For how long the reporting thread has waited. The session has been open for longer.
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

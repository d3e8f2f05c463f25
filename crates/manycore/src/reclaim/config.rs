//! What a domain can be asked for.

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

/// The largest batch.
pub(super) const BATCH_MAX: usize = 253;

/// How readers and the threads that wait for them ensure that one sees the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Barriers {
    /// Readers execute no fence while they enter many sections for each scan: the scan has the
    /// system make all threads execute a fence (membarrier on Linux). Readers execute a fence where
    /// scans are frequent, and always where the system refuses the call.
    #[default]
    Auto,
    /// With a fence in every reader.
    Fences,
}

/// A reader that keeps garbage from being freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// The thread, by [`thread::id`](crate::sync::thread::id): on Linux what `ps -L` calls `LWP`.
    pub thread: u32,
    /// For how long the reader has kept garbage from being freed. The reader entered its critical
    /// section at least that long ago.
    pub blocked_for: Duration,
    /// Bytes of garbage that wait to be freed.
    pub held_bytes: usize,
}

/// The function that a domain calls with each stall.
pub type OnStall = Box<dyn Fn(&Stall) + Send + Sync>;

/// The parameters of a [`Domain`](super::Domain).
///
/// ```
/// use core::time::Duration;
/// use manycore::reclaim::{Config, Domain};
///
/// let config = Config::default().with_limit_bytes(1 << 20).with_patience(Duration::from_secs(5));
/// let domain = Domain::new(config);
/// # drop(domain);
/// ```
#[non_exhaustive]
pub struct Config {
    /// How readers and scans see each other.
    pub barriers: Barriers,
    /// The limit of garbage in bytes. Near the limit, a thread that has retired something waits for
    /// room at the end of its critical section. Sections that are open when the limit is reached
    /// can retire more objects, and so exceed it.
    pub limit_bytes: usize,
    /// How long a thread waits for room before it goes on without. The default is
    /// [`Duration::MAX`]: it waits until there is room.
    pub wait_max: Duration,
    /// A reader that keeps garbage from being freed for longer than this is a stall. The stall is
    /// reported again each time the same duration has passed. The default is one second.
    pub patience: Duration,
    /// The function that is called with a stall's reader. A thread that has retired something calls
    /// it, at the end of its critical section. The function must not use the domain.
    pub on_stall: Option<OnStall>,
    /// The most objects that a thread retires before it scans for expired ones: 1 to 253. A larger
    /// number is faster, and keeps more garbage. A thread that retires slowly scans earlier, see
    /// [the module](super#bounded-garbage).
    pub batch: usize,
}

impl Default for Config {
    /// At most 64 MiB of garbage, no bound for the wait for room, and a patience of one second.
    fn default() -> Self {
        Self {
            barriers: Barriers::Auto,
            limit_bytes: 64 << 20,
            wait_max: Duration::MAX,
            patience: Duration::from_secs(1),
            on_stall: None,
            batch: BATCH_MAX,
        }
    }
}

impl Config {
    setters! {
        /// Replaces [`Config::barriers`].
        with_barriers: barriers: Barriers,
        /// Replaces [`Config::limit_bytes`].
        with_limit_bytes: limit_bytes: usize,
        /// Replaces [`Config::wait_max`].
        with_wait_max: wait_max: Duration,
        /// Replaces [`Config::patience`].
        with_patience: patience: Duration,
        /// Replaces [`Config::batch`].
        with_batch: batch: usize,
    }

    /// Replaces [`Config::on_stall`].
    #[must_use]
    pub fn with_on_stall(mut self, on_stall: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        self.on_stall = Some(Box::new(on_stall));
        self
    }

    /// [`Config::wait_max`] in nanoseconds.
    pub(super) fn wait_ns_max(&self) -> u64 {
        u64::try_from(self.wait_max.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Config")
            .field("barriers", &self.barriers)
            .field("limit_bytes", &self.limit_bytes)
            .field("wait_max", &self.wait_max)
            .field("patience", &self.patience)
            .field("on_stall", &self.on_stall.is_some())
            .field("batch", &self.batch)
            .finish()
    }
}

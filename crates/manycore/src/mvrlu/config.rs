//! Limits of a domain, and the report on threads that prevent it from keeping them.

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use super::object::Version;

/// How often a thread yields its CPU for one session. A session that is still open then is a long
/// one, for which writers should not wait.
pub(super) const YIELDS: u32 = 8;

/// The most times that the pause between two looks is doubled.
pub(super) const DOUBLINGS_MAX: u32 = 6;

/// Limits of a domain's logs.
///
/// ```
/// use manycore::clock::Ordo;
/// use manycore::mvrlu::{Config, Domain};
///
/// let domain = Domain::new(Ordo::measured(), Config::default().with_log_bytes(64 << 20));
/// # drop(domain);
/// ```
#[non_exhaustive]
pub struct Config {
    /// The size of a segment of a log, a multiple of 64. An object has to fit into it. 16 KiB.
    pub segment_bytes: usize,
    /// The number of segments of a thread's log when it registers, at least 2. 8: the log has the
    /// 128 KiB of KhronOS.
    pub segments: usize,
    /// The number of segments to which the log may grow while old versions cannot be discarded, for
    /// example because of a long snapshot. 1024, which are 16 MiB: enough for snapshots of some
    /// tens of milliseconds beside a thread that writes all the time. See
    /// [`with_log_bytes`](Self::with_log_bytes).
    pub segments_max: usize,
    /// The percentage of `segments` from which on the thread searches for a grace period by itself.
    /// 50, as published.
    pub low_percent: usize,
    /// The percentage of `segments_max` from which on a transaction waits for room before it
    /// begins. 75, as published.
    pub high_percent: usize,
    /// After this many steps over versions instead of objects, a thread searches for a grace
    /// period, after which versions are written back. The cost of these steps is about that of the
    /// search. 64; sixteen times as many where a scan takes a system call, and with 32 CPUs or
    /// more.
    pub hops_max: u32,
    /// A thread also searches after this many versions of its own: until they are written back,
    /// readers have to pass over them, and other CPUs have to fetch them. 32; four times as many
    /// where a scan takes a system call, and with 32 CPUs or more.
    pub versions_max: u32,
    /// After this many more snapshots than commits, commits wait for the clocks instead of
    /// snapshots, and vice versa. 1000.
    pub hysteresis: u32,
    /// A session is reported as a stall if a thread with a full log has waited for it for longer
    /// than this. It is reported again after each such time. 100 ms.
    pub patience: Duration,
    /// Called with such a session, on the thread that waits for it.
    pub on_stall: Option<OnStall>,
}

/// The function that a domain calls with each stall.
pub type OnStall = Box<dyn Fn(&Stall) + Send + Sync>;

/// A session that keeps others from discarding old versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// The number of its thread: on Linux, the kernel's.
    pub thread: u32,
    /// The session's stamp: a time of the domain's [`Clock`](crate::clock::Clock), at which or
    /// after which it began.
    pub stamp: u64,
    /// How long the reporting thread has waited. The session has been open for longer.
    pub blocked_for: Duration,
    /// The size of the full log of the reporting thread, in bytes.
    pub bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            segment_bytes: 16 << 10,
            segments: 8,
            segments_max: 1024,
            low_percent: 50,
            high_percent: 75,
            hops_max: 64,
            versions_max: 32,
            hysteresis: 1000,
            patience: Duration::from_millis(100),
            on_stall: None,
        }
    }
}

impl Config {
    /// The configuration with logs that may grow to this number of bytes, rounded down to segments.
    /// Writers continue beside a snapshot until their writes since its begin take three quarters of
    /// that. If a thread writes `w` versions a second of `b` bytes, a snapshot of `s` seconds takes
    /// `w * (b + 64) * s`.
    #[must_use]
    pub fn with_log_bytes(mut self, bytes: usize) -> Self {
        self.segments_max = (bytes / self.segment_bytes).max(self.segments);
        self
    }

    setters! {
        /// Replaces [`Config::segment_bytes`].
        with_segment_bytes: segment_bytes: usize,
        /// Replaces [`Config::segments`].
        with_segments: segments: usize,
        /// Replaces [`Config::segments_max`].
        with_segments_max: segments_max: usize,
        /// Replaces [`Config::low_percent`].
        with_low_percent: low_percent: usize,
        /// Replaces [`Config::high_percent`].
        with_high_percent: high_percent: usize,
        /// Replaces [`Config::hops_max`].
        with_hops_max: hops_max: u32,
        /// Replaces [`Config::versions_max`].
        with_versions_max: versions_max: u32,
        /// Replaces [`Config::hysteresis`].
        with_hysteresis: hysteresis: u32,
        /// Replaces [`Config::patience`].
        with_patience: patience: Duration,
    }

    /// Replaces [`Config::on_stall`].
    #[must_use]
    pub fn with_on_stall(mut self, on_stall: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        self.on_stall = Some(Box::new(on_stall));
        self
    }

    pub(super) fn check(&self) {
        assert!(
            self.segment_bytes.is_multiple_of(64)
                && self.segment_bytes >= 2 * size_of::<Version>() + 64,
            "Config::segment_bytes is {}: it has to be a multiple of 64, and to hold a version",
            self.segment_bytes
        );
        assert!(
            2 <= self.segments && self.segments <= self.segments_max,
            "Config::segments is {} of {}: there have to be 2 or more, and not more than segments_max",
            self.segments,
            self.segments_max
        );
        assert!(
            self.low_percent <= 100 && self.high_percent <= 100,
            "Config: low_percent is {} and high_percent {}: they are percentages",
            self.low_percent,
            self.high_percent
        );
    }

    /// The number of used segments from which on the thread searches for a grace period.
    pub(super) fn low(&self) -> usize {
        (self.segments * self.low_percent / 100).max(2)
    }

    /// Segments with versions in them from which on a transaction waits before it begins.
    pub(super) fn high(&self) -> usize {
        (self.segments_max * self.high_percent / 100).max(2)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("segment_bytes", &self.segment_bytes)
            .field("segments", &self.segments)
            .field("segments_max", &self.segments_max)
            .finish_non_exhaustive()
    }
}

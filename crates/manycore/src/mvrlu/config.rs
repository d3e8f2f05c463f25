//! Limits of a domain, and the report on who keeps it from keeping them.

use alloc::boxed::Box;
use core::fmt;

use super::object::Version;

/// So often a thread gives up its CPU for one session. One that is still open after that is a long
/// one, which writers are not to wait for.
pub(super) const YIELDS: u32 = 8;

/// The most times that the pause between two looks is doubled.
pub(super) const DOUBLINGS_MAX: u32 = 6;

/// Limits of a domain's logs.
pub struct Config {
    /// Bytes of a segment of a log, a multiple of 64: an object has to fit. 16 KiB.
    pub segment_bytes: usize,
    /// Segments of a thread's log when it registers, at least 2. 8: the log has the 128 KiB of
    /// KhronOS.
    pub segments: usize,
    /// Segments to which it may grow while old versions cannot be discarded, as by a long snapshot.
    /// 1024, which are 16 MiB: enough for snapshots of some tens of milliseconds beside a thread
    /// that writes all the time. See [`with_log_bytes`](Self::with_log_bytes).
    pub segments_max: usize,
    /// Percent of `segments` from which on the thread looks for a grace period by itself. 50, as
    /// published.
    pub low_percent: usize,
    /// Percent of `segments_max` from which on a transaction waits for room before it begins. 75,
    /// as published.
    pub high_percent: usize,
    /// After this many steps over versions, rather than objects, a thread looks for a grace period,
    /// after which versions are written back: about as many as cost as much as that. 64; sixteen
    /// times as many where a scan takes a system call, and with 32 CPUs or more.
    pub hops_max: u32,
    /// After this many versions of its own, too: until they are written back they are on readers'
    /// way, and other CPUs have to fetch them. 32; four times as many where a scan takes a system
    /// call, and with 32 CPUs or more.
    pub versions_max: u32,
    /// After this many more snapshots than commits, commits wait for the clocks rather than
    /// snapshots, and the other way round. 1000.
    pub swing: u32,
    /// Attempts for room in a log, pauses of up to 1 ms between them, after which a session that is
    /// in the way is reported. 100.
    pub patience: u32,
    /// Who is told about it.
    pub report: Option<Report>,
}

/// Is told about a session that lasts too long, on the thread that has to wait for it.
pub type Report = Box<dyn Fn(&Stall) + Send + Sync>;

/// A session that keeps others from discarding old versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The number of its thread: on Linux, the kernel's.
    pub thread: u32,
    /// Since when: a time of the domain's clock, at which or after which it began.
    pub since: u64,
    /// How long that is ago, in ticks of that clock.
    pub age: u64,
    /// Bytes of the log that has no room, on the thread that reports.
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
            swing: 1000,
            patience: 100,
            report: None,
        }
    }
}

impl Config {
    /// The same with logs that may grow to this number of bytes, rounded down to segments: writers
    /// go on beside a snapshot until what they have written since its begin takes three quarters of
    /// that. Beside a thread that writes `w` versions a second of `b` bytes, a snapshot of `s`
    /// seconds takes `w * (b + 64) * s`.
    pub fn with_log_bytes(mut self, bytes: usize) -> Self {
        self.segments_max = (bytes / self.segment_bytes).max(self.segments);
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

    /// Segments with versions in them from which on the thread looks for a grace period.
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

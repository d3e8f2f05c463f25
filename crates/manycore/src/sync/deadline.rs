//! The end of a thread's wait.

#![allow(clippy::disallowed_types, reason = "callers have the standard library's moments")]

/// The end of a thread's wait, in the form of the futex system call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Deadline {
    /// Whether `seconds` and `nanoseconds` count on the wall clock (which can be set) or the
    /// monotonic one.
    pub wall: bool,
    /// Whole seconds since the clock's epoch.
    pub seconds: i64,
    /// Nanoseconds within the second, below 10^9.
    pub nanoseconds: u32,
}

impl Deadline {
    /// The moment that is this duration from now, on the monotonic clock.
    #[cfg(any(feature = "sim", all(target_os = "linux", not(loom), not(manycore_bare))))]
    #[must_use]
    pub fn after(duration: core::time::Duration) -> Self {
        let until = super::backend::monotonic().saturating_add(duration);
        let seconds = i64::try_from(until.as_secs()).unwrap_or(i64::MAX);
        Self { wall: false, seconds, nanoseconds: until.subsec_nanos() }
    }

    /// Whether the moment has come.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        super::backend::has_passed(self)
    }
}

/// The clock of deadlines, for the type parameters of `lock_api`: the standard library's clock,
/// where there is one.
#[cfg(all(
    feature = "lock_api",
    feature = "std",
    target_os = "linux",
    not(any(loom, manycore_bare, feature = "sim"))
))]
pub(crate) type Moment = std::time::Instant;
/// The same without the standard library.
#[cfg(all(
    feature = "lock_api",
    any(
        feature = "sim",
        all(target_os = "linux", not(feature = "std"), not(loom), not(manycore_bare))
    )
))]
pub(crate) type Moment = Deadline;

#[cfg(all(feature = "std", target_os = "linux", not(any(loom, manycore_bare, feature = "sim"))))]
impl From<std::time::Instant> for Deadline {
    /// The same moment on the monotonic clock, whose time this function reads. A past moment
    /// becomes now.
    fn from(instant: std::time::Instant) -> Self {
        Self::after(instant.saturating_duration_since(std::time::Instant::now()))
    }
}

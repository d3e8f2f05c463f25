//! What was measured of a load.

use manycore_kernel_trace::Seen;

use super::Order;

/// The measured loads, and their results.
pub(super) struct Measured {
    pub order: Order,
    /// Operations a second, by round.
    pub values: Vec<f64>,
    pub profiled: Vec<Profiled>,
}

/// A run that was watched.
pub(super) struct Profiled {
    /// Operations a second.
    pub throughput: f64,
    /// The time of all its processes or threads, in nanoseconds.
    pub time_ns: f64,
    pub seen: Seen,
}

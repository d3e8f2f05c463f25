//! System calls of a program: which were executed by other threads, and which were not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version of the model.
pub const SYSTEM_CALLS_SCHEMA: u32 = 1;

/// The calls of a program, all processes together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MovedCalls {
    /// [`SYSTEM_CALLS_SCHEMA`].
    pub schema: u32,
    /// The mechanism of moved calls: `thread`, `pool` or `uring`; `in-place` if calls were not
    /// moved.
    pub mechanism: String,
    /// The CPUs on which they could be executed.
    pub cpus: Vec<u32>,
    /// Those on which some were.
    #[serde(default)]
    pub cpus_used: Vec<u32>,
    /// Processes that left statistics.
    pub processes: u32,
    /// Calls that another thread executed.
    pub moved: u64,
    /// Calls that were executed in place because moving costs more than it saves.
    pub bypassed: u64,
    /// Calls on sockets that were executed in place for other reasons.
    pub in_place: u64,
    /// Calls on other descriptors.
    pub others: u64,
    /// The duration of moved calls from the caller's side, in nanoseconds; none if none was moved.
    pub latency_ns: Option<Latency>,
    /// The duration of moved calls that do not wait, such as `setsockopt` or `close`: the
    /// hand-over, and the call itself.
    #[serde(default)]
    pub quick_ns: Option<Latency>,
    /// The calls by function, the most moved first, then the most called.
    pub functions: Vec<FunctionCalls>,
}

/// Quantiles, in nanoseconds, right to about 20 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of the calls took less.
    pub p50: u64,
    /// One in a hundred took more.
    pub p99: u64,
    /// One in a thousand took more.
    pub p999: u64,
    /// The longest, which may have waited for others.
    pub max: u64,
}

/// The calls of one function. The first four numbers are parts of those of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionCalls {
    /// Its name in C.
    pub name: String,
    /// How many another thread executed.
    pub moved: u64,
    /// The number of calls that were executed in place because moving them costs more than it
    /// saves.
    pub bypassed: u64,
    /// The number of calls on sockets that were executed in place for other reasons.
    pub in_place: u64,
    /// How many were on other descriptors.
    pub others: u64,
    /// How many were not moved, by reason.
    pub reasons: BTreeMap<String, u64>,
}

impl FunctionCalls {
    /// All of them.
    pub fn all(&self) -> u64 {
        let parts = [self.moved, self.bypassed, self.in_place, self.others];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

impl MovedCalls {
    /// Calls on sockets: all but those on other descriptors.
    pub fn on_sockets(&self) -> u64 {
        [self.moved, self.bypassed, self.in_place].into_iter().fold(0, u64::saturating_add)
    }
}

//! One short run of threads that use a structure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::slice;
use crate::waits::Waits;

/// What it measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StructureSlice {
    /// Operations that each thread did in the time that was counted.
    pub counts: Vec<u64>,
    pub elapsed_ns: f64,
    /// How long operations took.
    pub latency: Waits,
    /// Bytes for each key, when the structure has been filled and no thread has used it yet.
    pub bytes_per_key: f64,
    /// Bytes beyond that, at the end of the counted time: garbage, logs, handles.
    pub garbage: f64,
    /// The mechanism's own counts while threads worked, including the warm-up, for each operation.
    pub statistics: BTreeMap<String, f64>,
}

impl StructureSlice {
    /// Operations a second, over all threads. A slice without one counts as half a one.
    pub fn throughput(&self) -> f64 {
        slice::throughput(&self.counts, self.elapsed_ns)
    }

    /// Operations of the busiest thread over those of the least busy; a thread without any
    /// operation counts as one with one operation.
    pub fn fairness(&self) -> f64 {
        slice::fairness(&self.counts)
    }
}

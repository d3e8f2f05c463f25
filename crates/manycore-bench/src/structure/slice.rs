//! One short run of threads that use a structure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::slice;
use crate::waits::Waits;

/// What it measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StructureSlice {
    /// The number of operations of each thread in the counted time.
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
    /// Operations a second, over all threads. If there was no operation, half an operation is
    /// assumed.
    pub fn throughput(&self) -> f64 {
        slice::throughput(&self.counts, self.elapsed_ns)
    }

    /// The number of operations of the busiest thread over that of the least busy one. A thread
    /// without any counts as if it had one.
    pub fn fairness(&self) -> f64 {
        slice::fairness(&self.counts)
    }
}

//! What the program did to the memory.

use serde::{Deserialize, Serialize};

/// Reads that the last-level cache did not have, of the program and its children outside of the
/// kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheMisses {
    /// How many; null if they were not counted.
    pub reads: Option<u64>,
    /// The share of the time in which they were counted, 0 to 1: where it is less, `reads` is
    /// worked out.
    pub counted: Option<f64>,
    /// Why they were not counted.
    pub refused: Option<String>,
    /// Lines out of other nodes' caches; null in profiles of before that was counted.
    #[serde(default)]
    pub other_nodes: Option<OtherNodes>,
}

/// Lines that came out of the cache of another NUMA node, counted by an event of the processor's
/// model: Intel's counts loads that found the line modified there, AMD's counts demand fills of the
/// data cache. The two cannot be compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherNodes {
    /// The event, as the processor's maker calls it; null if none is known.
    pub event: Option<String>,
    /// How many; null if they were not counted.
    pub lines: Option<u64>,
    /// As of [`CacheMisses`].
    pub counted: Option<f64>,
    /// Why they were not counted.
    pub refused: Option<String>,
}

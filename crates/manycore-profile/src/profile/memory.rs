//! What the program did to the memory.

use serde::{Deserialize, Serialize};

/// Reads that missed the last-level cache, of the program and its children outside of the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheMisses {
    /// How many; null if they were not counted.
    pub reads: Option<u64>,
    /// The share of the time in which they were counted, from 0 to 1: if it is less than 1, `reads`
    /// is extrapolated.
    pub counted: Option<f64>,
    /// Why they were not counted.
    pub refused: Option<String>,
    /// Lines from other nodes' caches; null in profiles older than this field.
    #[serde(default)]
    pub other_nodes: Option<OtherNodes>,
}

/// Lines that came from the cache of another NUMA node, counted by an event of the processor's
/// model. Intel's event counts loads that found the line modified there, AMD's counts demand fills
/// of the data cache. The two cannot be compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherNodes {
    /// The manufacturer's name of the event; null if none is known.
    pub event: Option<String>,
    /// How many; null if they were not counted.
    pub lines: Option<u64>,
    /// As of [`CacheMisses`].
    pub counted: Option<f64>,
    /// Why they were not counted.
    pub refused: Option<String>,
}

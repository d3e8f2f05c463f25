//! What the program did to the memory.

use serde::{Deserialize, Serialize};

/// Reads that the last-level cache did not have, of the program and its children outside of the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheMisses {
    /// How many; null if they were not counted.
    pub reads: Option<u64>,
    /// The share of the time in which they were counted, 0 to 1: where it is less, `reads` is worked out.
    pub counted: Option<f64>,
    /// Why they were not counted.
    pub refused: Option<String>,
}

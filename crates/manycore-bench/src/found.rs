//! What came of a benchmark.

use manycore_measure::Measurement;

/// Records, and what has none.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// A record for each candidate at each point.
    pub measurements: Vec<Measurement>,
    /// Candidates that failed, a line for each. They have no records.
    pub failures: Vec<String>,
}

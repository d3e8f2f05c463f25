//! The results of a benchmark.

use manycore_measure::Measurement;

/// The records of a benchmark's run, and the candidates that have none.
#[derive(Clone, Debug, Default)]
pub struct RunRecords {
    /// A record for each candidate at each point.
    pub measurements: Vec<Measurement>,
    /// A line for each candidate that failed. Such candidates have no records.
    pub failures: Vec<String>,
}

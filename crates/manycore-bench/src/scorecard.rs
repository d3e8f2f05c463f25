//! The judged results of a benchmark.

use manycore_measure::{Claim, Measurement};

/// Records, the claims about them, and candidates without records.
#[derive(Clone, Debug, Default)]
pub struct Scorecard {
    /// A record for each candidate at each point.
    pub measurements: Vec<Measurement>,
    /// The promises or goals, judged.
    pub claims: Vec<Claim>,
    /// A line for each candidate that failed. Such candidates have no records.
    pub failures: Vec<String>,
}

//! The units of published values, and their conversion to rates, of which more is better.

use serde::Deserialize;

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Measure {
    /// Operations of all threads in a unit of time.
    Rate,
    /// Time of an operation, as each thread sees it. In that time each thread does one.
    TimeOfThread,
    /// Time divided by the operations of all threads.
    Time,
    /// The time that one access takes.
    Latency,
    /// The time that one access takes, in cycles of the core's clock.
    Cycles,
}

impl Measure {
    /// Converts a value to a rate.
    pub fn rate(self, value: f64, threads: u32) -> f64 {
        match self {
            Self::Rate => value,
            Self::TimeOfThread => f64::from(threads) / value,
            Self::Time | Self::Latency | Self::Cycles => 1.0 / value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_becomes_a_rate() {
        assert_eq!(Measure::Rate.rate(4.0, 2), 4.0);
        assert_eq!(Measure::TimeOfThread.rate(4.0, 2), 0.5);
        assert_eq!(Measure::Time.rate(4.0, 2), 0.25);
    }
}

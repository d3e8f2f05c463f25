//! What published values are, and how they become something of which more is better.

use serde::Deserialize;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Measure {
    /// Operations in a time, of all threads.
    Rate,
    /// Time for an operation, of each thread: all threads do as many operations in it as they are.
    TimeOfThread,
    /// Time divided by the operations of all threads.
    Time,
    /// How long one access takes until it is done.
    Latency,
    /// The same, in cycles of the core's clock.
    Cycles,
}

impl Measure {
    /// A value as something of which more is better.
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
    fn more_is_better() {
        assert_eq!(Measure::Rate.rate(4.0, 2), 4.0);
        assert_eq!(Measure::TimeOfThread.rate(4.0, 2), 0.5);
        assert_eq!(Measure::Time.rate(4.0, 2), 0.25);
    }
}

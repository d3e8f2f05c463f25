//! From values by round to the metrics of a record.

use manycore_measure::Metric;
use manycore_measure::paired::{Comparison, Median};

use crate::wait_pool::Pooled;

/// The percentiles of waits that are reported, and the names of their metrics.
pub(crate) const WAIT_PERCENTILES: [(&str, f64); 4] =
    [("wait_p50", 0.5), ("wait_p99", 0.99), ("wait_p99_9", 0.999), ("wait_max", 1.0)];

/// The median over the rounds. There is at least one round.
pub(crate) fn median(unit: &str, values: &[f64]) -> Metric {
    let Median { value, interval } =
        Median::of(values).unwrap_or(Median { value: f64::NAN, interval: None });
    metric(unit, Pooled { value, interval })
}

/// A value without an interval.
pub(crate) fn plain(unit: &str, value: f64) -> Metric {
    Metric { value, unit: unit.into(), low: None, high: None }
}

/// A value with its interval.
pub(crate) fn metric(unit: &str, Pooled { value, interval }: Pooled) -> Metric {
    Metric { value, unit: unit.into(), low: interval.map(|i| i.0), high: interval.map(|i| i.1) }
}

/// A ratio to the base line.
pub(crate) fn ratio(comparison: &Comparison) -> Metric {
    metric("ratio", (*comparison).into())
}

//! Many batches of one kernel, and what they come to.

use std::time::Instant;

use manycore::sync::clock;

/// A constant that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// What it is called.
    pub name: String,
    /// Nanoseconds, unless `what` says otherwise.
    pub value: f64,
    /// The least that was seen.
    pub low: f64,
    /// What three quarters of the batches kept below.
    pub high: f64,
    /// By what it was measured.
    pub what: String,
}

/// The batches of one kernel: a value for each, in ascending order.
#[derive(Clone, Debug)]
pub(super) struct Sample(Vec<f64>);

impl Sample {
    /// Makes a sample of values in any order. There is at least one.
    pub fn of(mut values: Vec<f64>) -> Self {
        assert!(!values.is_empty(), "a kernel ran no batch");
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }

    /// The value that this share of the batches does not exceed.
    pub fn percentile(&self, share: f64) -> f64 {
        let place = ((self.0.len() - 1) as f64 * share).round();
        self.0[place as usize]
    }

    /// The reading: the 10th percentile, with a range from the smallest value to the 75th
    /// percentile.
    pub fn reading(&self, name: impl Into<String>, what: impl Into<String>) -> Reading {
        Reading {
            name: name.into(),
            value: self.percentile(0.1),
            low: self.percentile(0.0),
            high: self.percentile(0.75),
            what: what.into(),
        }
    }

    /// The reading of a value that disturbances make smaller as often as larger: the median,
    /// between the quartiles.
    pub fn middle(&self, name: impl Into<String>, what: impl Into<String>) -> Reading {
        Reading {
            name: name.into(),
            value: self.percentile(0.5),
            low: self.percentile(0.25),
            high: self.percentile(0.75),
            what: what.into(),
        }
    }
}

/// Runs batches of `operations` each: returns nanoseconds an operation. The first batch warms up
/// and does not count.
pub(super) fn batches(count: usize, operations: u32, mut batch: impl FnMut()) -> Sample {
    batch();
    let time = |_| {
        let start = Instant::now();
        batch();
        start.elapsed().as_nanos() as f64 / f64::from(operations)
    };
    Sample::of((0..count).map(time).collect())
}

/// Nanoseconds for a tick of the counter, from an interval that is long enough for both clocks.
pub(super) fn ns_per_tick() -> f64 {
    let (start, ticks) = (Instant::now(), clock::now());
    std::thread::sleep(std::time::Duration::from_millis(50));
    let (ns, ticks) = (start.elapsed().as_nanos(), clock::now().wrapping_sub(ticks));
    ns as f64 / ticks as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_by_hand() {
        let sample = Sample::of((0..=20).rev().map(f64::from).collect());
        let reading = sample.reading("a", "b");
        assert_eq!((reading.low, reading.value, reading.high), (0.0, 2.0, 15.0));
        let middle = sample.middle("a", "b");
        assert_eq!((middle.low, middle.value, middle.high), (5.0, 10.0, 15.0));
    }

    #[test]
    fn a_tick_takes_a_sane_time() {
        let ns = ns_per_tick();
        assert!((0.1..100.0).contains(&ns), "{ns}");
    }
}

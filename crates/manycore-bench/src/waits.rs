//! How long threads waited: a distribution, kept as counts by length.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The longest wait that is distinguished from longer ones: a minute.
const LONGEST_NS: u64 = 60_000_000_000;

/// Waits, to about one percent of their length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// Lengths in nanoseconds, each with the number of waits of that length.
    bins: BTreeMap<u64, u64>,
}

/// A running thread's records: constant memory, no allocation.
pub(crate) fn recorder() -> Histogram<u64> {
    // The bounds are constants that the library accepts: at least 1, twice that at most, up to five
    // digits.
    Histogram::new_with_bounds(1, LONGEST_NS, 2).expect("valid bounds")
}

impl Waits {
    /// Adds what was recorded in ticks of a clock.
    pub(crate) fn add_ticks(&mut self, recorded: &Histogram<u64>, ns_per_tick: f64) {
        // Scaled values are put into the same bins again, so that waits of different runs add up.
        let mut scaled = recorder();
        for bin in recorded.iter_recorded() {
            let ns = (bin.value_iterated_to() as f64 * ns_per_tick).round() as u64;
            scaled.saturating_record_n(ns.max(1), bin.count_at_value());
        }
        for bin in scaled.iter_recorded() {
            *self.bins.entry(bin.value_iterated_to()).or_default() += bin.count_at_value();
        }
    }

    /// Adds this many waits of one length.
    pub(crate) fn add(&mut self, ns: u64, count: u64) {
        *self.bins.entry(ns.clamp(1, LONGEST_NS)).or_default() += count;
    }

    /// How many waits there are.
    pub fn count(&self) -> u64 {
        self.bins.values().sum()
    }

    /// The length that this share of the waits does not exceed; `None` without waits.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        quantile(&self.bins.iter().map(|(ns, count)| (*ns, *count)).collect::<Vec<_>>(), share)
    }

    /// Length and count, shortest first.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins.iter().map(|(ns, count)| (*ns, *count))
    }
}

/// The quantile of this share, from lengths in ascending order with their counts.
pub(crate) fn quantile(bins: &[(u64, u64)], share: f64) -> Option<f64> {
    let total: u64 = bins.iter().map(|(_, count)| count).sum();
    let wanted = ((total as f64 * share).ceil() as u64).max(1);
    let mut seen = 0;
    let reached = bins.iter().find(|(_, count)| {
        seen += count;
        seen >= wanted
    });
    reached.map(|(ns, _)| *ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_hand() {
        let mut waits = Waits::default();
        assert_eq!(waits.quantile(0.5), None);
        waits.add(10, 98);
        waits.add(1_000, 1);
        waits.add(90, 1);
        assert_eq!(waits.count(), 100);
        let found = [0.0, 0.5, 0.98, 0.99, 0.991, 1.0].map(|share| waits.quantile(share).unwrap());
        assert_eq!(found, [10.0, 10.0, 10.0, 90.0, 1_000.0, 1_000.0]);
    }

    #[test]
    fn ticks_become_nanoseconds_to_a_percent() {
        let mut recorded = recorder();
        recorded.saturating_record(2_600_000);
        recorded.saturating_record(u64::MAX);
        let mut waits = Waits::default();
        waits.add_ticks(&recorded, 1.0 / 2.6);
        let ends =
            [waits.quantile(0.5).unwrap() / 1e6, waits.quantile(1.0).unwrap() / LONGEST_NS as f64];
        assert!((0.98..1.02).contains(&ends[0]), "{ends:?}");
        assert!((0.3..1.02).contains(&ends[1]), "{ends:?}");
    }

    #[test]
    fn json_keeps_them() {
        let mut waits = Waits::default();
        waits.add(12, 3);
        let text = serde_json::to_string(&waits).unwrap();
        assert_eq!(serde_json::from_str::<Waits>(&text).unwrap(), waits);
    }
}

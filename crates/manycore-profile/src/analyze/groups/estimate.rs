//! An estimate for all holds from a sample: a total with its interval.
//!
//! The mean of n values is off by at most Student's t times their standard deviation over the root
//! of n, nineteen times in twenty. That assumes that the sample has seen all kinds of holds. Holds
//! are usually short and sometimes long, when the holder loses its CPU or sleeps. If an event is
//! rarer than once in n/3 holds, a sample of n has one chance in twenty to miss it. So the upper
//! end includes three more holds as long as the longest one.

use crate::profile::Held;
use manycore_stats::Histogram;

/// Sampled durations, in any unit.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total: f64,
    /// The longest.
    pub longest: f64,
    /// Their standard deviation.
    pub deviation: f64,
}

impl Sample {
    /// A sample of which the distribution may be known.
    pub fn of(count: u64, total: f64, longest: f64, distribution: Option<&Histogram>) -> Self {
        let mean = total / count.max(1) as f64;
        let seen = distribution.and_then(Histogram::variance).map(f64::sqrt);
        // Values between zero and the longest deviate by no more than this.
        let most = (mean * (longest - mean)).max(0.0).sqrt();
        Self { count, total, longest, deviation: seen.map_or(most, |seen| seen.min(most)) }
    }

    /// Estimates the sum of `all` values from a random sample of them; `None` if the sample is
    /// empty.
    pub fn sum_of(&self, all: u64) -> Option<Held> {
        if self.count == 0 {
            return None;
        }
        let n = self.count as f64;
        let mean = self.total / n;
        // A sample of all is exact.
        let unseen = if self.count >= all { 0.0 } else { (1.0 - n / all as f64).sqrt() };
        let off = student_t(self.count) * self.deviation / n.sqrt() * unseen;
        let rare = 3.0 / n * (self.longest - mean).max(0.0) * unseen;
        // What was seen is there.
        let low = ((mean - off) * all as f64).max(self.total.min(mean * all as f64));
        Some(Held {
            total_ns: (mean * all as f64).round() as u64,
            low_ns: low.round() as u64,
            high_ns: ((mean + off + rare) * all as f64).round() as u64,
        })
    }
}

/// The bound of Student's t, with one degree of freedom fewer than values, in nineteen of twenty
/// cases.
fn student_t(values: u64) -> f64 {
    match values.saturating_sub(1) {
        0 => 12.7,
        1 => 12.7,
        2 => 4.30,
        3 => 3.18,
        4 => 2.78,
        5 => 2.57,
        6..=7 => 2.45,
        8..=10 => 2.31,
        11..=15 => 2.20,
        16..=30 => 2.12,
        31..=100 => 2.04,
        _ => 1.98,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_that_are_all_alike_are_known() {
        let sample = Sample::of(31, 31.0 * 200.0, 200.0, None);
        assert_eq!(
            sample.sum_of(2000),
            Some(Held { total_ns: 400_000, low_ns: 400_000, high_ns: 400_000 })
        );
        assert_eq!(Sample::of(0, 0.0, 0.0, None).sum_of(10), None);
    }

    #[test]
    fn one_long_hold_among_few_says_little() {
        let sample = Sample::of(31, 30.0 * 200.0 + 4000.0, 4000.0, None);
        let held = sample.sum_of(2000).unwrap();
        assert!(held.low_ns < 400_000 && held.high_ns > 1_000_000, "{held:?}");
        // All of them were measured.
        let all = sample.sum_of(31).unwrap();
        assert_eq!((all.low_ns, all.high_ns), (10_000, 10_000));
    }

    /// At least nineteen of twenty intervals contain the truth, for holds of which one in a hundred
    /// is fifty times as long.
    #[test]
    fn intervals_hold_the_truth() {
        let mut dice = 88_172_645_463_325_252_u64;
        let mut throw = || {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            dice % 1000
        };
        let truth = 0.99 * 100.0 + 0.01 * 5000.0;
        let mut right = 0;
        for _ in 0..1000 {
            let histogram = Histogram::default();
            let holds: Vec<u64> =
                (0..100).map(|_| if throw() < 10 { 5000 } else { 50 + throw() / 10 }).collect();
            holds.iter().for_each(|hold| histogram.count(*hold));
            let longest = *holds.iter().max().unwrap() as f64;
            let total = holds.iter().sum::<u64>() as f64;
            let held = Sample::of(100, total, longest, Some(&histogram)).sum_of(1_000_000).unwrap();
            let range = held.low_ns as f64..=held.high_ns as f64;
            right += u32::from(range.contains(&(truth * 1e6)));
        }
        // A third of the samples contains no long hold: no sample can know that.
        assert!(right >= 600, "{right}");
    }
}

//! The waits of all rounds together, and how far their percentiles can be trusted.
//!
//! One slice has too few waits for its 99.9th percentile, so the waits of all rounds are pooled.
//! The interval is a percentile bootstrap over rounds: a seeded generator repeatedly draws rounds
//! with replacement, and the percentile is taken each time. Rounds are drawn rather than waits,
//! because the waits within one round depend on each other.

use std::collections::BTreeMap;

use crate::slice::Slice;
use crate::waits::{self, Waits};

/// How often rounds are drawn anew.
const RESAMPLES: usize = 1_000;

/// Fewer rounds than this have no interval.
const FEWEST_ROUNDS: usize = 6;

/// Waits by length and round.
pub(crate) struct WaitPool {
    lengths: Vec<u64>,
    /// By round, then as the lengths.
    counts: Vec<Vec<u64>>,
}

/// A percentile or a ratio of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pooled {
    pub value: f64,
    pub interval: Option<(f64, f64)>,
}

impl WaitPool {
    pub fn new(slices: &[Slice]) -> Self {
        Self::of(&slices.iter().map(|slice| &slice.waits).collect::<Vec<_>>())
    }

    /// The pool of the waits of each round.
    pub fn of(rounds: &[&Waits]) -> Self {
        let all = rounds.iter().flat_map(|waits| waits.bins());
        let index: BTreeMap<u64, usize> = all.map(|(ns, _)| (ns, 0)).collect();
        let lengths: Vec<u64> = index.into_keys().collect();
        let row = |waits: &&Waits| {
            let mut row = vec![0; lengths.len()];
            for (ns, count) in waits.bins() {
                let place = lengths.partition_point(|length| *length < ns);
                row[place] += count;
            }
            row
        };
        let counts = rounds.iter().map(row).collect();
        Self { lengths, counts }
    }

    /// The percentile over the given rounds.
    fn over(&self, rounds: impl Iterator<Item = usize>, share: f64) -> Option<f64> {
        let mut bins: Vec<(u64, u64)> = self.lengths.iter().map(|length| (*length, 0)).collect();
        for round in rounds {
            for (bin, count) in bins.iter_mut().zip(&self.counts[round]) {
                bin.1 += count;
            }
        }
        waits::quantile(&bins, share)
    }

    /// The percentile over all rounds; `None` without waits.
    pub fn quantile(&self, share: f64, draw: Draw) -> Option<Pooled> {
        let over = |rounds: &[usize]| self.over(rounds.iter().copied(), share);
        draw.bootstrap(self.counts.len(), over)
    }

    /// The percentile over that of a base line with the same rounds.
    pub fn ratio(&self, base: &Self, share: f64, draw: Draw) -> Option<Pooled> {
        let over = |rounds: &[usize]| {
            let rounds = || rounds.iter().copied();
            Some(self.over(rounds(), share)? / base.over(rounds(), share)?)
        };
        draw.bootstrap(self.counts.len().min(base.counts.len()), over)
    }
}

/// How an interval is to be had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    /// The probability with which it holds.
    pub confidence: f64,
    /// By what rounds are drawn.
    pub seed: u64,
}

impl Draw {
    /// The result of all rounds, with an interval if there are enough rounds.
    fn bootstrap(self, rounds: usize, compute: impl Fn(&[usize]) -> Option<f64>) -> Option<Pooled> {
        let value = compute(&(0..rounds).collect::<Vec<_>>())?;
        if rounds < FEWEST_ROUNDS {
            return Some(Pooled { value, interval: None });
        }
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut resample = || {
            let drawn: Vec<usize> = (0..rounds).map(|_| random.usize(..rounds)).collect();
            compute(&drawn)
        };
        let mut values: Vec<f64> = (0..RESAMPLES).filter_map(|_| resample()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let cut = (values.len() as f64 * (1.0 - self.confidence) / 2.0) as usize;
        // Where a single round decides the percentile, the others can all lie on one side of it.
        let low = values.get(cut).map_or(value, |low| low.min(value));
        let high = values.iter().rev().nth(cut).map_or(value, |high| high.max(value));
        Some(Pooled { value, interval: Some((low, high)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slice whose waits are these.
    fn slice(waits: &[(u64, u64)]) -> Slice {
        let mut slice =
            Slice { counts: vec![1], elapsed_ns: 1.0, waits: Waits::default(), stuck: 0 };
        waits.iter().for_each(|(ns, count)| slice.waits.add(*ns, *count));
        slice
    }

    const DRAW: Draw = Draw { confidence: 0.95, seed: 1 };

    #[test]
    fn waits_of_all_rounds_count() {
        let pool = WaitPool::new(&[slice(&[(10, 99)]), slice(&[(10, 99), (500, 2)])]);
        assert_eq!(pool.quantile(0.99, DRAW), Some(Pooled { value: 10.0, interval: None }));
        assert_eq!(pool.quantile(0.999, DRAW).unwrap().value, 500.0);
        assert_eq!(WaitPool::new(&[]).quantile(0.5, DRAW), None);
    }

    #[test]
    fn rounds_that_differ_widen_the_interval() {
        let steady: Vec<Slice> = (0..10).map(|_| slice(&[(100, 50)])).collect();
        let mixed: Vec<Slice> =
            (0..10).map(|n| slice(&[(if n % 2 == 0 { 100 } else { 900 }, 50)])).collect();
        let found = |slices: &[Slice]| WaitPool::new(slices).quantile(0.9, DRAW).unwrap();
        assert_eq!(found(&steady), Pooled { value: 100.0, interval: Some((100.0, 100.0)) });
        assert_eq!(found(&mixed), Pooled { value: 900.0, interval: Some((900.0, 900.0)) });
        assert_eq!(
            WaitPool::new(&mixed).quantile(0.5, DRAW).unwrap().interval,
            Some((100.0, 900.0))
        );
        let ratio = WaitPool::new(&mixed).ratio(&WaitPool::new(&steady), 0.5, DRAW).unwrap();
        assert_eq!(ratio, Pooled { value: 1.0, interval: Some((1.0, 9.0)) });
    }
}

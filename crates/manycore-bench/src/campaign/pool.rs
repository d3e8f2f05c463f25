//! The waits of all rounds together, and how far their percentiles can be trusted.
//!
//! One slice has too few waits for its 99.9th percentile, so the waits of all rounds are pooled. The interval is a
//! percentile bootstrap over rounds: rounds are drawn with replacement, again and again, by a seeded generator, and
//! the percentile taken each time. Rounds and not waits are drawn because the waits within one depend on each other.

use std::collections::BTreeMap;

use crate::slice::Slice;
use crate::waits;

/// How often rounds are drawn anew.
const RESAMPLES: usize = 400;

/// Fewer rounds than this have no interval.
const FEWEST_ROUNDS: usize = 6;

/// Waits by length and round.
pub(crate) struct Pool {
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

impl Pool {
    pub fn new(slices: &[Slice]) -> Self {
        let all = slices.iter().flat_map(|slice| slice.waits.bins());
        let index: BTreeMap<u64, usize> = all.map(|(ns, _)| (ns, 0)).collect();
        let lengths: Vec<u64> = index.into_keys().collect();
        let row = |slice: &Slice| {
            let mut row = vec![0; lengths.len()];
            for (ns, count) in slice.waits.bins() {
                let place = lengths.partition_point(|length| *length < ns);
                row[place] += count;
            }
            row
        };
        let counts = slices.iter().map(row).collect();
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
    pub fn quantile(&self, share: f64, seed: u64) -> Option<Pooled> {
        let value = self.over(0..self.counts.len(), share)?;
        let interval =
            bootstrap(self.counts.len(), seed, |rounds| self.over(rounds.iter().copied(), share));
        Some(Pooled { value, interval })
    }

    /// The percentile over that of a base line with the same rounds.
    pub fn ratio(&self, base: &Self, share: f64, seed: u64) -> Option<Pooled> {
        let over = |rounds: &[usize]| {
            let rounds = || rounds.iter().copied();
            Some(self.over(rounds(), share)? / base.over(rounds(), share)?)
        };
        let rounds = self.counts.len().min(base.counts.len());
        let value = over(&(0..rounds).collect::<Vec<_>>())?;
        Some(Pooled { value, interval: bootstrap(rounds, seed, over) })
    }
}

/// The 95 % interval of what is computed from rounds; `None` if they are too few.
fn bootstrap(
    rounds: usize,
    seed: u64,
    compute: impl Fn(&[usize]) -> Option<f64>,
) -> Option<(f64, f64)> {
    if rounds < FEWEST_ROUNDS {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut resample = || {
        let drawn: Vec<usize> = (0..rounds).map(|_| random.usize(..rounds)).collect();
        compute(&drawn)
    };
    let mut values: Vec<f64> = (0..RESAMPLES).filter_map(|_| resample()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let cut = values.len() / 40;
    Some((*values.get(cut)?, *values.get(values.len().checked_sub(cut + 1)?)?))
}

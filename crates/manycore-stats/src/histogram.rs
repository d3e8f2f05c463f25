//! A distribution that is counted while others read it.
//!
//! Relaxed throughout: counters are independent of each other.

use core::sync::atomic::{AtomicU32, Ordering};

const SUB_BUCKETS: u32 = 4;
const BUCKETS: usize = 48 * SUB_BUCKETS as usize;

/// Counts by size, with four buckets for each octave, so that a quantile is right to about 20 %.
#[derive(Debug)]
#[repr(C)]
pub struct Histogram {
    buckets: [AtomicU32; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [const { AtomicU32::new(0) }; BUCKETS] }
    }
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn count(&self, value: u64) {
        self.buckets[bucket(value)].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one value this many times.
    pub fn count_times(&self, value: u64, times: u32) {
        // Relaxed: as a single one.
        self.buckets[bucket(value)].fetch_add(times, Ordering::Relaxed);
    }

    /// Adds another histogram's counts to this one's.
    pub fn add(&self, other: &Self) {
        for (mine, theirs) in self.buckets.iter().zip(&other.buckets) {
            mine.fetch_add(theirs.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Subtracts the counts of an earlier moment.
    pub fn subtract(&self, before: &Self) {
        for (mine, old) in self.buckets.iter().zip(&before.buckets) {
            let left = mine.load(Ordering::Relaxed).saturating_sub(old.load(Ordering::Relaxed));
            mine.store(left, Ordering::Relaxed);
        }
    }

    /// The largest value, to about 20 %; `None` without values.
    pub fn largest(&self) -> Option<u64> {
        let top = self.buckets.iter().rposition(|bucket| bucket.load(Ordering::Relaxed) > 0)?;
        Some((lowest(top) + lowest(top + 1)) / 2)
    }

    /// The variance of the values; its square root is right to about 6 % of their mean. `None`
    /// without values.
    pub fn variance(&self) -> Option<f64> {
        let values = || {
            self.buckets.iter().enumerate().map(|(bucket, count)| {
                let middle = (lowest(bucket) + lowest(bucket + 1)) as f64 / 2.0;
                (middle, f64::from(count.load(Ordering::Relaxed)))
            })
        };
        let count: f64 = values().map(|(_, count)| count).sum();
        let mean = values().map(|(value, count)| value * count).sum::<f64>() / count;
        let squares = values().map(|(value, count)| (value - mean) * (value - mean) * count);
        (count > 0.0).then(|| squares.sum::<f64>() / count)
    }

    /// The value below which the share `q` (0 to 1) of all counted values lies, to about 20 %;
    /// `None` without values.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let counts = || self.buckets.iter().map(|bucket| u64::from(bucket.load(Ordering::Relaxed)));
        let total: u64 = counts().sum();
        let wanted = ((q * total as f64) as u64).min(total.checked_sub(1)?);
        let mut below = 0;
        let found = counts().position(|count| {
            below += count;
            below > wanted
        })?;
        // The middle of the bucket.
        Some((lowest(found) + lowest(found + 1)) / 2)
    }
}

/// The bucket of a value: exact below [`SUB_BUCKETS`], then by octave and quarter.
fn bucket(value: u64) -> usize {
    if value < u64::from(SUB_BUCKETS) {
        return value as usize;
    }
    let octave = value.ilog2();
    let quarter = (value >> (octave - 2)) as u32 & (SUB_BUCKETS - 1);
    (((octave - 1) * SUB_BUCKETS + quarter) as usize).min(BUCKETS - 1)
}

/// The smallest value of a bucket.
fn lowest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let sub = u64::from(SUB_BUCKETS);
    if bucket < sub {
        return bucket;
    }
    (sub + bucket % sub) << (bucket / sub - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_tile_the_numbers() {
        for index in 0..BUCKETS - 1 {
            assert_eq!(bucket(lowest(index)), index);
            assert_eq!(bucket(lowest(index + 1) - 1), index);
        }
    }

    #[test]
    fn quantiles_are_near() {
        let histogram = Histogram::default();
        (1..=1000).for_each(|value| histogram.count(value * 1000));
        for (q, exact) in [(0.5, 500_000.0), (0.99, 990_000.0)] {
            let found = histogram.quantile(q).unwrap() as f64;
            assert!((found / exact - 1.0).abs() < 0.2, "{found} for {exact}");
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn what_was_counted_since_has_its_own_quantiles() {
        let (before, now) = (Histogram::default(), Histogram::default());
        for _ in 0..100 {
            before.count(1 << 30);
            now.count(1 << 30);
        }
        (0..10).for_each(|_| now.count(1000));
        assert!(now.largest().unwrap() > 1 << 29);
        now.subtract(&before);
        assert!((800..1250).contains(&now.largest().unwrap()), "{:?}", now.largest());
        assert_eq!((now.quantile(0.99), Histogram::default().largest()), (now.largest(), None));
    }
}

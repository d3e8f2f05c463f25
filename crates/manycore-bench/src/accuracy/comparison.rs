//! Native and simulated throughput of a lock, or of another mechanism, with one workload.

use manycore_measure::paired::Median;

/// Both throughputs.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    /// The workload, in words.
    pub workload: String,
    pub threads: u32,
    pub mechanism: String,
    pub native: f64,
    pub simulated: f64,
}

impl Comparison {
    /// The relative error of the simulated throughput, without its sign.
    pub fn error(&self) -> f64 {
        (self.simulated / self.native - 1.0).abs()
    }
}

/// Errors in ascending order.
pub(crate) fn errors<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>) -> Vec<f64> {
    let mut errors: Vec<f64> = comparisons.into_iter().map(Comparison::error).collect();
    errors.sort_unstable_by(f64::total_cmp);
    errors
}

/// The median of sorted values.
pub(crate) fn median(sorted: &[f64]) -> Option<f64> {
    Median::of(sorted).map(|median| median.value)
}

/// The 90th percentile of sorted values.
pub(crate) fn p90(sorted: &[f64]) -> Option<f64> {
    let rank = (0.9 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.checked_sub(1)?).copied()
}

/// Two mechanisms with the same workload are compared if one of them is natively ahead by more than
/// this.
pub(crate) const APART: f64 = 1.15;

/// The pairs of mechanisms that differ natively: how many the simulator puts in the same order, and
/// how many there are.
pub(crate) fn order<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>) -> (usize, usize) {
    let all: Vec<&Comparison> = comparisons.into_iter().collect();
    let (mut same, mut pairs) = (0, 0);
    for ahead in &all {
        let same_point = |other: &&&Comparison| {
            (&other.workload, other.threads) == (&ahead.workload, ahead.threads)
        };
        for behind in all.iter().filter(same_point) {
            if ahead.native > APART * behind.native {
                pairs += 1;
                same += usize::from(ahead.simulated > behind.simulated);
            }
        }
    }
    (same, pairs)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two mechanisms with these throughputs.
    pub fn compared(threads: u32, native: [f64; 2], simulated: [f64; 2]) -> Vec<Comparison> {
        let of = |index: usize| Comparison {
            workload: "a workload".into(),
            threads,
            mechanism: ["a", "b"][index].into(),
            native: native[index],
            simulated: simulated[index],
        };
        vec![of(0), of(1)]
    }

    #[test]
    fn errors_and_orders_by_hand() {
        let mut all = compared(1, [100.0, 200.0], [110.0, 150.0]);
        let sorted = errors(&all);
        assert!((sorted[0] - 0.10).abs() < 1e-9 && (sorted[1] - 0.25).abs() < 1e-9);
        assert_eq!(order(&all), (1, 1));
        // These are too close to each other to count, and in the wrong order.
        all.extend(compared(2, [100.0, 110.0], [2.0, 1.0]));
        assert_eq!(order(&all), (1, 1));
        all.extend(compared(8, [100.0, 120.0], [2.0, 1.0]));
        assert_eq!(order(&all), (1, 2));
    }

    #[test]
    fn the_90th_percentile_of_few_values() {
        let sorted: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!((p90(&sorted), median(&sorted)), (Some(9.0), Some(5.5)));
        assert_eq!((p90(&[]), median(&[])), (None, None));
    }
}

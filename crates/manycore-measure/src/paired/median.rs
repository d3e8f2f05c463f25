//! What one side measured: a median and its interval.

/// A median with its 95 % interval.
///
/// For the value of one candidate, in addition to the ratio to another. The interval lies between
/// two order statistics and belongs to the sign test: it holds for any distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The median.
    pub value: f64,
    /// The median's interval; none if there are fewer than 6 values.
    pub interval: Option<(f64, f64)>,
}

impl Median {
    /// The median of some values; none if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let value = 0.5 * (sorted[last / 2] + sorted[last.div_ceil(2)]);
        let interval =
            end_rank(sorted.len()).map(|rank| (sorted[rank - 1], sorted[last + 1 - rank]));
        Some(Self { value, interval })
    }
}

/// The rank, from 1 and from either end, of the value that ends the interval.
fn end_rank(values: usize) -> Option<usize> {
    // The number of values below the median has the distribution of the heads of this many coins.
    // It is computed by logarithms, because 2^-values underflows.
    let mut log_probability = -(values as f64) * std::f64::consts::LN_2;
    let mut cumulated = 0.0;
    let mut rank = 0;
    for heads in 0..values / 2 {
        cumulated += log_probability.exp();
        if cumulated > 0.025 {
            break;
        }
        rank = heads + 1;
        log_probability += ((values - heads) as f64 / (heads + 1) as f64).ln();
    }
    (rank > 0).then_some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_binomial_distribution() {
        for (n, rank) in
            [(5, None), (6, Some(1)), (8, Some(1)), (9, Some(2)), (31, Some(10)), (100, Some(40))]
        {
            assert_eq!(end_rank(n), rank, "n = {n}");
        }
        let rank = end_rank(10_000).unwrap();
        assert!((4_895..4_910).contains(&rank), "{rank}");
    }

    #[test]
    fn medians() {
        assert_eq!(Median::of(&[]), None);
        assert_eq!(Median::of(&[3.0, 1.0, 2.0]), Some(Median { value: 2.0, interval: None }));
        let values: Vec<f64> = (1..=6).map(f64::from).collect();
        assert_eq!(Median::of(&values), Some(Median { value: 3.5, interval: Some((1.0, 6.0)) }));
    }
}

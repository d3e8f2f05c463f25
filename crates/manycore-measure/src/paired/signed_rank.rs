//! The centre of a symmetric distribution, by ranks: the Hodges-Lehmann estimate and its interval.
//!
//! The *Walsh averages* of n values are the n(n+1)/2 means of all pairs of them, including each
//! value with itself. Their median is the estimate. The number of Walsh averages below the true
//! centre is distributed as Wilcoxon's statistic: toss a coin for each rank of 1..n, and add up the
//! ranks with heads. The interval excludes those centres for which the number of averages below
//! them (or above them) is improbably small, and contains all others.

/// The rank, counted from 1 and from either end, of the Walsh average that ends the interval: a
/// centre beyond it has at most probability `tail`. None if even the extremes are more probable
/// than that.
pub(super) fn end_rank(values: usize, tail: f64) -> Option<usize> {
    let sums = rank_sums(values);
    let cumulated = sums.iter().scan(0.0, |total, probability| {
        *total += probability;
        Some(*total)
    });
    match cumulated.take_while(|total| *total <= tail).count() {
        0 => None,
        // Sums of 0 up to rank - 1 are improbable, so at least `rank` averages are below the
        // centre.
        rank => Some(rank),
    }
}

/// The probability of each value of Wilcoxon's statistic, up to its middle.
fn rank_sums(values: usize) -> Vec<f64> {
    let middle = values * (values + 1) / 4;
    let mut probability = vec![0.0; middle + 1];
    probability[0] = 1.0;
    for rank in 1..=values {
        let largest = (rank * (rank + 1) / 2).min(middle);
        // Each rank is in the sum or not, with equal probability. The loop goes downwards, so that
        // a rank is added at most once.
        for sum in (0..=largest).rev() {
            let with_rank = if sum >= rank { probability[sum - rank] } else { 0.0 };
            probability[sum] = 0.5 * (probability[sum] + with_rank);
        }
    }
    probability
}

/// The estimate, and the interval whose ends have this rank.
pub(super) fn estimate(values: &[f64], end: Option<usize>) -> (f64, Option<(f64, f64)>) {
    let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (index, a) in values.iter().enumerate() {
        averages.extend(values[..=index].iter().map(|b| 0.5 * (a + b)));
    }
    averages.sort_unstable_by(f64::total_cmp);
    let last = averages.len() - 1;
    let middle = 0.5 * (averages[last / 2] + averages[last.div_ceil(2)]);
    (middle, end.map(|rank| (averages[rank - 1], averages[last + 1 - rank])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_printed_tables() {
        // Critical values of the signed-rank test, two-sided 5 %: n and the largest sum that is
        // significant.
        for (n, critical) in [(6, 0), (8, 3), (10, 8), (15, 25), (20, 52), (25, 89), (30, 137)] {
            assert_eq!(end_rank(n, 0.025), Some(critical + 1), "n = {n}");
        }
        assert_eq!(end_rank(5, 0.025), None);
        assert_eq!(end_rank(0, 0.025), None);
    }

    #[test]
    fn many_values_agree_with_the_normal_approximation() {
        // Mean 40100, standard deviation 2313.7.
        let rank = end_rank(400, 0.025).unwrap();
        assert!((35_545..35_585).contains(&rank), "{rank}");
    }

    #[test]
    fn estimate_by_hand() {
        // Walsh averages of 1, 2, 6: 1, 1.5, 2, 3.5, 4, 6.
        assert_eq!(estimate(&[6.0, 1.0, 2.0], Some(2)), (2.75, Some((1.5, 4.0))));
        assert_eq!(estimate(&[3.0], None), (3.0, None));
    }
}

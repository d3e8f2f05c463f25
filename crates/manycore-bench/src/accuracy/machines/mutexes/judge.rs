//! Claims about simulations of real machines.

use manycore_measure::{Bound, Claim};

use super::Compared;
use crate::accuracy::comparison::{median, p90};
use crate::accuracy::judge::claim;

/// Two locks differ if one is faster by this factor.
pub(super) const APART: f64 = 1.3;

/// A summary of many factors: their number, their median, and the 90th percentile.
pub(super) struct Summary {
    pub count: usize,
    pub median: Option<f64>,
    pub p90: Option<f64>,
}

/// The summary of the points that are judged.
pub(super) fn summary<'a>(compared: impl IntoIterator<Item = &'a Compared>) -> Summary {
    let judged = compared.into_iter().filter(|one| one.counts());
    let mut factors: Vec<f64> = judged.map(Compared::factor).collect();
    factors.sort_unstable_by(f64::total_cmp);
    Summary { count: factors.len(), median: median(&factors), p90: p90(&factors) }
}

/// Compares the pairs of locks that differ by [`APART`] on the same machine, in the same series and
/// with the same number of tasks: how many are in the same order when simulated, and how many there
/// are.
pub(super) fn order<'a>(compared: impl IntoIterator<Item = &'a Compared>) -> (usize, usize) {
    let judged: Vec<&Compared> = compared.into_iter().filter(|one| one.counts()).collect();
    let place =
        |one: &Compared| (one.published.model, one.published.series.clone(), one.published.tasks);
    let (mut same, mut pairs) = (0, 0);
    for slower in &judged {
        for faster in judged.iter().filter(|other| place(other) == place(slower)) {
            if slower.published.ns >= APART * faster.published.ns {
                pairs += 1;
                same += usize::from(slower.simulated > faster.simulated);
            }
        }
    }
    (same, pairs)
}

/// Claims about all machines together.
pub(super) fn claims(compared: &[Compared]) -> Vec<Claim> {
    let Summary { count, median, p90 } = summary(compared);
    let (same, pairs) = order(compared);
    let points = format!("{count} points with more than one task");
    vec![
        claim(
            "mutexes-median",
            "median factor by which the time of an acquisition is off",
            Bound::AtMost(1.35),
            median,
            &points,
        ),
        claim("mutexes-p90", "90th percentile of that factor", Bound::AtMost(2.5), p90, &points),
        claim(
            "mutexes-order",
            "pairs of locks in the measured order, of those 1.3x apart or more",
            Bound::AtLeast(0.85),
            (pairs > 0).then(|| same as f64 / pairs as f64),
            &format!("{same} of {pairs} pairs"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::published::Published;
    use super::*;

    fn compared(tasks: u32, lock: &'static str, ns: f64, simulated: f64) -> Compared {
        let (model, series) = ("a machine", "a series".to_owned());
        Compared { published: Published { model, series, lock, tasks, ns }, simulated }
    }

    #[test]
    fn factors_and_orders_by_hand() {
        let all = [
            compared(1, "futex", 10.0, 100.0), // one task: not judged
            compared(2, "futex", 100.0, 50.0),
            compared(2, "rust-std", 130.0, 130.0),
            compared(2, "mcs", 400.0, 100.0),
        ];
        let Summary { count, median, p90 } = summary(&all);
        assert_eq!((count, median, p90), (3, Some(2.0), Some(4.0)));
        // The simulation does not show `mcs` as slower than `rust-std`.
        assert_eq!(order(&all), (2, 3));
        let verdicts: Vec<bool> =
            claims(&all).iter().map(|c| c.verdict == manycore_measure::Judgement::Pass).collect();
        assert_eq!(verdicts, [false; 3]);
    }
}

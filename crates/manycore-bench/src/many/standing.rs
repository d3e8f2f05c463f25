//! How a lock compares with others, over many points.

use super::points::MachinePoint;
use crate::lock::SIMULATED_BASE as BASE;
use crate::simulated::Finding;

/// A lock at a point.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub lock: String,
    /// Sections a second.
    pub throughput: f64,
    /// The 99.9th percentile of waits, in nanoseconds.
    pub wait: Option<f64>,
    /// The number of sections of the thread with the most over that of the thread with the fewest.
    pub fairness: f64,
}

impl Run {
    pub fn new(lock: &str, finding: &Finding) -> Self {
        Self {
            lock: lock.to_owned(),
            throughput: finding.slice.throughput(),
            wait: finding.slice.waits.quantile(0.999),
            fairness: finding.slice.fairness(),
        }
    }
}

/// All locks at a point.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub place: MachinePoint,
    pub runs: Vec<Run>,
}

impl Outcome {
    pub fn run(&self, lock: &str) -> Option<&Run> {
        self.runs.iter().find(|run| run.lock == lock)
    }

    /// The fastest of some locks but for one.
    pub fn best_but(&self, lock: &str, rivals: &[&str]) -> Option<&Run> {
        let others = self.runs.iter().filter(|run| run.lock != lock);
        let rivals = others.filter(|run| rivals.contains(&run.lock.as_str()));
        rivals.max_by(|a, b| a.throughput.total_cmp(&b.throughput))
    }

    /// A lock's throughput over that of the fastest of the others.
    pub fn over_best(&self, lock: &str, rivals: &[&str]) -> Option<f64> {
        let best = self.best_but(lock, rivals)?.throughput;
        (best > 0.0).then_some(self.run(lock)?.throughput / best)
    }

    fn over_base(&self, lock: &str) -> Option<f64> {
        let base = self.run(BASE)?.throughput;
        (base > 0.0).then_some(self.run(lock)?.throughput / base)
    }
}

/// A lock over all points at which it ran.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Standing {
    pub points: usize,
    /// The geometric mean of its throughput over the best other lock's.
    pub mean: Option<f64>,
    /// The lowest, and where that is.
    pub least: Option<(f64, String)>,
    /// The number of points at which it is under the bar.
    pub under: usize,
    /// The lowest of its throughput over the base line's.
    pub least_of_base: Option<(f64, String)>,
    /// The number of points at which it reaches less than 0.95 of the base line.
    pub under_base: usize,
}

/// The standing of a lock.
pub(super) fn of(lock: &str, rivals: &[&str], outcomes: &[Outcome], bar: f64) -> Standing {
    let ratios = |ratio: &dyn Fn(&Outcome) -> Option<f64>| -> Vec<(f64, String)> {
        outcomes.iter().filter_map(|one| Some((ratio(one)?, one.place.to_string()))).collect()
    };
    let least = |all: &[(f64, String)]| all.iter().min_by(|a, b| a.0.total_cmp(&b.0)).cloned();
    let under = |all: &[(f64, String)], bar| all.iter().filter(|(ratio, _)| *ratio < bar).count();
    let best = ratios(&|outcome| outcome.over_best(lock, rivals));
    let base = ratios(&|outcome| outcome.over_base(lock));
    Standing {
        points: best.len(),
        mean: mean(best.iter().map(|(ratio, _)| *ratio)),
        least: least(&best),
        under: under(&best, bar),
        least_of_base: least(&base),
        under_base: under(&base, 0.95),
    }
}

/// The geometric mean; none of nothing.
pub(super) fn mean(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = ratios.map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// The largest ratio of a lock's long waits to another lock's, and its point, among the points with
/// no more threads than CPUs.
pub(super) fn longest_waits(lock: &str, other: &str, all: &[Outcome]) -> Option<(f64, String)> {
    let fit = all.iter().filter(|one| one.place.point.threads <= one.place.cpus);
    let ratios = fit.filter_map(|one| {
        let (own, other) = (one.run(lock)?.wait?, one.run(other)?.wait?);
        (other > 0.0).then(|| (own / other, one.place.to_string()))
    });
    ratios.max_by(|a, b| a.0.total_cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, points};
    use super::*;
    use manycore_sim::model;

    fn outcome(number: usize, throughputs: [(&str, f64, f64); 3]) -> Outcome {
        let places = points::all(Kind::Mutexes, &[model::find("ivybridge-2x10").unwrap()]);
        let run = |(lock, throughput, wait): (&str, f64, f64)| Run {
            lock: lock.into(),
            throughput,
            wait: Some(wait),
            fairness: 1.0,
        };
        Outcome { place: places[number].clone(), runs: throughputs.map(run).to_vec() }
    }

    #[test]
    fn standings_by_hand() {
        let all = [
            outcome(0, [("futex", 10.0, 1.0), ("adaptive", 20.0, 6.0), ("mcs", 40.0, 2.0)]),
            outcome(1, [("futex", 20.0, 1.0), ("adaptive", 16.0, 1.0), ("mcs", 8.0, 2.0)]),
        ];
        let rivals = ["futex", "adaptive", "mcs"];
        let found = of("adaptive", &rivals, &all, 0.8);
        assert_eq!(found.points, 2);
        assert!((found.mean.unwrap() - (0.5_f64 * 0.8).sqrt()).abs() < 1e-12);
        assert_eq!(found.least.unwrap(), (0.5, all[0].place.to_string()));
        assert_eq!((found.under, found.under_base), (1, 1));
        assert_eq!(found.least_of_base.unwrap(), (0.8, all[1].place.to_string()));
        // Among some locks only: `futex` is no rival.
        assert_eq!(of("adaptive", &["mcs"], &all, 0.8).least.unwrap().0, 0.5);
        assert_eq!(longest_waits("adaptive", "mcs", &all).unwrap().0, 3.0);
        assert_eq!(longest_waits("adaptive", "shfl", &all), None);
    }
}

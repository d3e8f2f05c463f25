//! The measuring protocol: whether one candidate is faster than another, on a machine that is never
//! quiet.
//!
//! # Pairs
//!
//! The candidates run in rounds, each once in a round, in an order that is drawn anew for every
//! round ([`Schedule`]). A disturbance that lasts longer than a round affects all of them. So their
//! ratio within a round counts, and not their values across rounds.
//!
//! # The ratio and its interval
//!
//! The estimate is that of Hodges and Lehmann on the logarithms of the paired ratios: the median of
//! the means of all pairs of logarithms. Its 95 % interval belongs to Wilcoxon's signed-rank test,
//! computed exactly; there is none for fewer than six pairs. It assumes nothing about the shape of
//! the noise, except that a pair errs upwards as often as downwards; the random order ensures that.
//! Outliers, which are frequent on a shared machine, count by their rank and not by their size. On
//! well-behaved noise the interval is 5 % wider than Student's.
//!
//! With several candidates each interval is widened (Bonferroni), so that with 95 % probability
//! *all* of them hold.
//!
//! # The verdict
//!
//! [`Faster`](Verdict::Faster) and [`Slower`](Verdict::Slower) if 1 is outside the interval.
//! [`NoDifference`](Verdict::NoDifference) if 1 is inside, and the interval excludes any difference
//! of the protocol's resolution (20 %) or more. Otherwise [`Undecided`](Verdict::Undecided): more
//! rounds are needed.
//!
//! # A first comparison
//!
//! ```
//! use manycore_measure::paired::{Better, Protocol, Schedule, Verdict};
//!
//! // Two candidates and a base line (number 0) run once a round, in an order drawn for the round.
//! let mut random = fastrand::Rng::with_seed(42);
//! let mut run = |candidate: usize| [1.0, 0.8, 1.0][candidate] * (1.0 + 0.01 * random.f64());
//! let mut times = vec![Vec::new(); 3];
//! for round in Schedule::new(3, 42).take(31) {
//!     round.into_iter().for_each(|candidate| times[candidate].push(run(candidate)));
//! }
//! let results = Protocol::new(Better::Lower).compare_all(&times[0], &[&times[1], &times[2]])?;
//! assert_eq!(results[0].verdict, Verdict::Faster);
//! assert_eq!(results[1].verdict, Verdict::NoDifference);
//! # Ok::<(), manycore_measure::paired::Unusable>(())
//! ```
//!
//! # Source
//!
//! J. L. Hodges and E. L. Lehmann, "Estimates of location based on rank tests", 1963; F. Wilcoxon,
//! "Individual comparisons by ranking methods", 1945. Interleaving: T. Kalibera and R. Jones,
//! "Rigorous benchmarking in reasonable time", 2013.

mod median;
mod rounds;
mod schedule;
mod signed_rank;

pub use median::Median;
pub use rounds::{Rounds, Stopwatch};
pub use schedule::Schedule;

/// The largest number of pairs in one comparison. With that many, longer runs are better than more
/// pairs.
pub const MAX_PAIRS: usize = 1_000;

/// Which values are the good ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Large ones: throughput.
    Higher,
    /// Small ones: time.
    Lower,
}

/// What the pairs say about a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Better than the base line.
    Faster,
    /// Worse than the base line.
    Slower,
    /// As good as the base line, within the resolution.
    NoDifference,
    /// Too few rounds to tell.
    Undecided,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no difference",
            Self::Undecided => "undecided (too few runs)",
        })
    }
}

/// A candidate against the base line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The candidate's value over that of the base line.
    pub ratio: f64,
    /// The interval of the ratio; none if there are too few pairs for one.
    pub interval: Option<(f64, f64)>,
    /// How many pairs there were.
    pub pairs: usize,
    /// What follows.
    pub verdict: Verdict,
}

/// Why values cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unusable {
    /// One candidate has more values than the other, so they are no pairs.
    NotPaired(usize, usize),
    /// There are no values, or more than [`MAX_PAIRS`].
    Count(usize),
    /// A value of which there is no ratio: zero, negative or not a number.
    NotPositive(f64),
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotPaired(a, b) => {
                write!(f, "{a} values against {b}: each round needs one of both sides")
            }
            Self::Count(count) => write!(f, "{count} pairs: a comparison takes 1 to {MAX_PAIRS}"),
            Self::NotPositive(value) => {
                write!(f, "a measured value is {value}: only positive numbers have a ratio")
            }
        }
    }
}

impl std::error::Error for Unusable {}

/// How to compare.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// Which values are the good ones.
    pub better: Better,
    /// The probability with which all intervals of a comparison hold.
    pub confidence: f64,
    /// The difference that must be excluded for [`Verdict::NoDifference`]: 0.2 for 20 %.
    pub resolution: f64,
}

impl Protocol {
    /// 95 % confidence, 20 % resolution.
    pub fn new(better: Better) -> Self {
        Self { better, confidence: 0.95, resolution: 0.2 }
    }

    /// Compares a candidate with the base line; values of the same index are a pair.
    pub fn compare(&self, base: &[f64], candidate: &[f64]) -> Result<Comparison, Unusable> {
        Ok(self.compare_all(base, &[candidate])?[0])
    }

    /// Compares several candidates with one base line. The intervals are as wide as the number of
    /// candidates requires.
    pub fn compare_all(
        &self,
        base: &[f64],
        candidates: &[&[f64]],
    ) -> Result<Vec<Comparison>, Unusable> {
        let error_each = (1.0 - self.confidence) / candidates.len().max(1) as f64;
        // The same for all candidates, and the costly part.
        let end = signed_rank::end_rank(base.len().min(MAX_PAIRS), error_each / 2.0);
        let compare = |candidate: &&[f64]| {
            let (ratio, interval) = signed_rank::estimate(&log_ratios(base, candidate)?, end);
            let interval = interval.map(|(low, high)| (low.exp(), high.exp()));
            let verdict = self.judge(interval);
            Ok(Comparison { ratio: ratio.exp(), interval, pairs: base.len(), verdict })
        };
        candidates.iter().map(compare).collect()
    }

    /// What an interval of ratios says.
    pub fn judge(&self, interval: Option<(f64, f64)>) -> Verdict {
        let Some((low, high)) = interval else { return Verdict::Undecided };
        let resolved = high < 1.0 + self.resolution && low > 1.0 / (1.0 + self.resolution);
        match self.better {
            Better::Higher if low > 1.0 => Verdict::Faster,
            Better::Higher if high < 1.0 => Verdict::Slower,
            Better::Lower if low > 1.0 => Verdict::Slower,
            Better::Lower if high < 1.0 => Verdict::Faster,
            _ if resolved => Verdict::NoDifference,
            _ => Verdict::Undecided,
        }
    }
}

fn log_ratios(base: &[f64], candidate: &[f64]) -> Result<Vec<f64>, Unusable> {
    if base.len() != candidate.len() {
        return Err(Unusable::NotPaired(base.len(), candidate.len()));
    }
    if !(1..=MAX_PAIRS).contains(&base.len()) {
        return Err(Unusable::Count(base.len()));
    }
    let usable = |value: &f64| value.is_finite() && *value > 0.0;
    match base.iter().chain(candidate).find(|value| !usable(value)) {
        Some(value) => Err(Unusable::NotPositive(*value)),
        None => Ok(base.iter().zip(candidate).map(|(a, b)| (b / a).ln()).collect()),
    }
}

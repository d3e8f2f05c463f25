//! Claims before they are judged.

use manycore_measure::{Bound, Claim, Judgement};

use crate::wait_pool::Pooled;
use manycore_measure::paired::{Comparison, Unusable};

/// A claim without a verdict.
pub(crate) struct UnjudgedClaim {
    pub id: String,
    pub text: String,
    pub bound: Bound,
}

/// A ratio that was found at one place.
pub(crate) struct Part {
    pub place: String,
    pub value: f64,
    /// The 95 % interval.
    interval: Option<(f64, f64)>,
    /// The interval at a confidence that holds for all parts together.
    wide: Option<(f64, f64)>,
}

impl Part {
    /// Computes a ratio with both of its intervals; `ratio` takes the confidence.
    pub fn new(
        place: String,
        places: usize,
        ratio: impl Fn(f64) -> Result<Pooled, Unusable>,
    ) -> Result<Self, Unusable> {
        let Pooled { value, interval } = ratio(0.95)?;
        let wide = ratio(1.0 - 0.05 / places as f64)?.interval;
        Ok(Self { place, value, interval, wide })
    }
}

impl From<Comparison> for Pooled {
    fn from(comparison: Comparison) -> Self {
        Self { value: comparison.ratio, interval: comparison.interval }
    }
}

impl UnjudgedClaim {
    /// There is nothing to judge.
    pub fn missing(self, what: &str) -> Claim {
        self.close(None, Judgement::Undecided, format!("not judged: {what}"))
    }

    /// Judges a claim about a single ratio.
    pub fn once(self, found: Pooled, note: String) -> Claim {
        let verdict = self.bound.judge(found.interval);
        self.close(Some(found), verdict, note)
    }

    /// Judges a claim that must hold for all parts. It passes if each interval keeps to the bound,
    /// and fails if one breaks it. The intervals are widened by their number, because of many
    /// intervals some are wrong by chance.
    pub fn everywhere(self, parts: &[Part]) -> Claim {
        let clearance = |part: &&Part| self.bound.clearance(part.value);
        let Some(worst) = parts.iter().min_by(|a, b| clearance(a).total_cmp(&clearance(b))) else {
            return self.missing("the run has none of the points");
        };
        let kept = parts.iter().all(|part| self.bound.judge(part.interval) == Judgement::Pass);
        let broken = parts.iter().any(|part| self.bound.judge(part.wide) == Judgement::Fail);
        let verdict = match (kept, broken) {
            (true, _) => Judgement::Pass,
            (_, true) => Judgement::Fail,
            _ => Judgement::Undecided,
        };
        let found = Pooled { value: worst.value, interval: worst.interval };
        self.close(Some(found), verdict, worst.place.clone())
    }

    fn close(self, found: Option<Pooled>, verdict: Judgement, note: String) -> Claim {
        let interval = found.and_then(|found| found.interval);
        Claim {
            value: found.map(|found| found.value),
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            verdict,
            note,
            ..Claim::open(self.id, self.text, self.bound)
        }
    }
}

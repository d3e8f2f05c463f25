//! A statement about measurements, and whether they support it.

use serde::{Deserialize, Serialize};

use crate::{Cell, Column, Table, Tone, interval, ratio};

/// A bound on a ratio, with what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// A name that stays the same from version to version.
    pub id: String,
    /// The statement, without its bound.
    pub text: String,
    /// The bound of the ratio. Null if the claim is reported and not judged.
    pub bound: Option<Bound>,
    /// The ratio. If several must be within the bound, it is the one with the least distance from
    /// it. Null if there is none.
    pub value: Option<f64>,
    /// The lower end of its 95 % interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// What follows.
    pub verdict: Judgement,
    /// Where the value was found, or why there is none.
    pub note: String,
    /// The published value, where the publication gives one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub published: Option<f64>,
    /// The verdict that was expected before the first run, for a claim of a publication.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expected: Option<Judgement>,
}

/// What a value must keep to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// No less than this.
    AtLeast(f64),
    /// No more than this.
    AtMost(f64),
    /// At least the first number, at most the second.
    Between(f64, f64),
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Judgement {
    /// The whole interval keeps to the bound.
    Pass,
    /// The whole interval breaks it.
    Fail,
    /// The bound lies within the interval, or there is none.
    Undecided,
    /// Nothing here can show it: the claim is only reported.
    #[serde(rename = "published only")]
    PublishedOnly,
}

impl Bound {
    /// The verdict for an interval. For an exact value, both ends are the value.
    pub fn judge(self, interval: Option<(f64, f64)>) -> Judgement {
        let Some((low, high)) = interval else { return Judgement::Undecided };
        let (kept, broken) = match self {
            Self::AtLeast(bound) => (low >= bound, high < bound),
            Self::AtMost(bound) => (high <= bound, low > bound),
            Self::Between(least, most) => {
                (low >= least && high <= most, high < least || low > most)
            }
        };
        match (kept, broken) {
            (true, _) => Judgement::Pass,
            (_, true) => Judgement::Fail,
            _ => Judgement::Undecided,
        }
    }

    /// The distance of a value from the bound, as a ratio: 1 is on the bound, and less is beyond
    /// it.
    pub fn clearance(self, value: f64) -> f64 {
        match self {
            Self::AtLeast(bound) => value / bound,
            Self::AtMost(bound) => bound / value,
            Self::Between(least, most) => (value / least).min(most / value),
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, "at least {}", ratio(*bound)),
            Self::AtMost(bound) => write!(f, "at most {}", ratio(*bound)),
            Self::Between(least, most) => write!(f, "{} to {}", ratio(*least), ratio(*most)),
        }
    }
}

impl std::fmt::Display for Judgement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Undecided => "undecided",
            Self::PublishedOnly => "published only",
        })
    }
}

impl Claim {
    /// A claim before it is judged, undecided.
    pub fn open(
        id: impl Into<String>,
        text: impl Into<String>,
        bound: impl Into<Option<Bound>>,
    ) -> Self {
        Self {
            id: id.into(),
            text: text.into(),
            bound: bound.into(),
            value: None,
            low: None,
            high: None,
            verdict: Judgement::Undecided,
            note: String::new(),
            published: None,
            expected: None,
        }
    }

    /// The colour in which to say the verdict.
    pub fn tone(&self) -> Tone {
        match self.verdict {
            Judgement::Pass => Tone::Good,
            Judgement::Fail => Tone::Bad,
            Judgement::Undecided | Judgement::PublishedOnly => Tone::Faint,
        }
    }

    /// A table of claims.
    pub fn table(claims: &[Self]) -> Table {
        let columns = [
            Column::words("claim"),
            Column::number("bound"),
            Column::number("found"),
            Column::number("95 %"),
            Column::words("verdict"),
            Column::words("where"),
        ];
        let mut table = Table::new(columns);
        for claim in claims {
            table.row([
                Cell::from(claim.text.as_str()),
                claim.bound.map_or(String::new(), |bound| bound.to_string()).into(),
                claim.value.map_or(String::new(), ratio).into(),
                interval(claim.low, claim.high).into(),
                Cell::new(claim.verdict.to_string(), claim.tone()),
                claim.note.as_str().into(),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_decides() {
        let least = Bound::AtLeast(0.9);
        assert_eq!(least.judge(Some((0.9, 1.2))), Judgement::Pass);
        assert_eq!(least.judge(Some((0.8, 0.89))), Judgement::Fail);
        assert_eq!(least.judge(Some((0.8, 1.2))), Judgement::Undecided);
        let most = Bound::AtMost(2.0);
        assert_eq!(most.judge(Some((0.1, 2.0))), Judgement::Pass);
        assert_eq!(most.judge(Some((2.1, 9.0))), Judgement::Fail);
        assert_eq!(most.judge(None), Judgement::Undecided);
        let both = Bound::Between(0.5, 2.0);
        assert_eq!(both.judge(Some((0.5, 2.0))), Judgement::Pass);
        assert_eq!(both.judge(Some((0.4, 2.0))), Judgement::Undecided);
        assert_eq!(both.judge(Some((0.2, 0.4))), Judgement::Fail);
        assert_eq!(both.judge(Some((2.1, 2.2))), Judgement::Fail);
        assert!(least.clearance(0.8) < 1.0 && most.clearance(1.0) > 1.0);
    }
}

//! The claims of a publication, and what measurements say about them.

use manycore_measure::{Bound, Claim, Judgement, Measurement};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::field::{Coordinate, Field};
use crate::selector::{Extreme, Selector};

/// A claim, as a file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// A name that stays.
    pub id: String,
    /// The claim in words.
    pub text: String,
    /// Where the publication makes it.
    pub place: String,
    /// The verdict that was expected before the first run; undecided if none was.
    #[serde(default, deserialize_with = "expected")]
    pub expected: Option<Judgement>,
    /// Why it is expected to be another than `pass`.
    pub why: Option<String>,
    /// Why nothing here can show it.
    pub published_only: Option<String>,
    /// The value.
    pub of: Option<Selector>,
    /// By what it is divided.
    pub over: Option<Selector>,
    /// The ratio is computed at each coordinate of these dimensions,
    #[serde(default)]
    pub each: Vec<Field>,
    /// and this one of them counts.
    pub take: Option<Extreme>,
    /// No less than this.
    pub at_least: Option<f64>,
    /// No more than this.
    pub at_most: Option<f64>,
    /// The value in the publication.
    pub published: Option<f64>,
    /// If it failed: the cause, as found by looking.
    pub cause: Option<String>,
}

/// The expectation, as in files: that a claim holds here, too, that it does not, or neither.
const EXPECTATIONS: [(&str, Judgement); 3] =
    [("pass", Judgement::Pass), ("fail", Judgement::Fail), ("unknown", Judgement::Undecided)];

fn expected<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Judgement>, D::Error> {
    let word = String::deserialize(from)?;
    match EXPECTATIONS.iter().find(|(own, _)| *own == word) {
        Some((_, expected)) => Ok(Some(*expected)),
        None => Err(D::Error::custom(format!("`{word}` is not pass, fail or unknown"))),
    }
}

/// What was expected, in a word.
pub(crate) fn expectation(expected: Judgement) -> &'static str {
    EXPECTATIONS.iter().find(|(_, own)| *own == expected).map_or("", |(word, _)| word)
}

impl Statement {
    /// What is wrong with it, if anything is.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.published_only.is_some() {
            let is_judged = self.of.is_some() || self.bound().is_some() || self.expected.is_some();
            return is_judged.then_some(
                "it is `published_only`, so that it has no `of`, no bound and no `expected`",
            );
        }
        let faults = [
            (self.of.is_none(), "it says neither `of` what it is nor `published_only`"),
            (self.bound().is_none(), "it has no bound: `at_least`, `at_most` or both"),
            (self.expected.is_none(), "it does not say what is `expected`: pass, fail or unknown"),
            (
                self.expected != Some(Judgement::Pass) && self.why.is_none(),
                "it does not say `why` it is not expected to pass",
            ),
            (
                self.at_least.zip(self.at_most).is_some_and(|(least, most)| least > most),
                "`at_least` is above `at_most`",
            ),
            (
                self.each.is_empty() != self.take.is_none(),
                "`each` and `take` go together: which of the ratios counts",
            ),
        ];
        faults.into_iter().find(|(wrong, _)| *wrong).map(|(_, fault)| fault)
    }

    /// A coordinate that the statement names and that the workload does not have.
    pub(crate) fn stranger(&self, has: impl Fn(Field, &Coordinate) -> bool) -> Option<String> {
        let selectors = self.of.iter().chain(&self.over);
        let (field, place) =
            selectors.flat_map(Selector::places).find(|(f, place)| !has(*f, place))?;
        Some(format!("the workload has no {} {place}", field.name()))
    }

    /// What its value must keep to.
    pub fn bound(&self) -> Option<Bound> {
        match (self.at_least, self.at_most) {
            (Some(least), Some(most)) => Some(Bound::Between(least, most)),
            (Some(least), None) => Some(Bound::AtLeast(least)),
            (None, Some(most)) => Some(Bound::AtMost(most)),
            (None, None) => None,
        }
    }

    /// Its value. The error says why there is none.
    pub fn value(&self, measurements: &[Measurement]) -> Result<f64, String> {
        let of = self.of.as_ref().ok_or("there is nothing to judge")?;
        let all: Vec<&Measurement> = measurements.iter().collect();
        let Some(take) = self.take else { return self.ratio(of, &all) };
        // A group for each coordinate in the named dimensions.
        let mut groups: Vec<(Vec<Option<Coordinate>>, Vec<&Measurement>)> = Vec::new();
        let place = |measurement: &Measurement| -> Vec<Option<Coordinate>> {
            self.each.iter().map(|field| field.of(measurement)).collect()
        };
        for measurement in &all {
            let place = place(measurement);
            match groups.iter_mut().find(|(own, _)| *own == place) {
                Some((_, group)) => group.push(measurement),
                None => groups.push((place, vec![measurement])),
            }
        }
        let meant = groups.iter().filter(|(_, group)| group.iter().any(|m| of.is_of(m)));
        let ratios = meant.map(|(_, group)| self.ratio(of, group));
        let ratios = ratios.collect::<Result<Vec<_>, _>>()?;
        take.of(ratios).ok_or_else(|| "it was not run".to_owned())
    }

    fn ratio(&self, of: &Selector, measurements: &[&Measurement]) -> Result<f64, String> {
        let base = self.over.as_ref().map_or(Ok(1.0), |over| over.value(measurements))?;
        let ratio = of.value(measurements)? / base;
        if ratio.is_finite() { Ok(ratio) } else { Err("it is divided by nothing".to_owned()) }
    }

    /// Judges the statement by the simulations of a machine and, if there are any, of variants of
    /// it.
    pub fn judge(&self, figure: &str, variants: &[&[Measurement]]) -> Claim {
        let mut claim = Claim {
            published: self.published,
            expected: self.expected,
            ..Claim::open(format!("{figure}/{}", self.id), &self.text, self.bound())
        };
        if let Some(reason) = &self.published_only {
            claim.verdict = Judgement::PublishedOnly;
            claim.note.clone_from(reason);
            return claim;
        }
        let values: Result<Vec<f64>, String> =
            variants.iter().map(|measurements| self.value(measurements)).collect();
        match values.as_deref() {
            Ok([value, others @ ..]) => {
                let least = others.iter().copied().fold(*value, f64::min);
                let most = others.iter().copied().fold(*value, f64::max);
                claim.value = Some(*value);
                if !others.is_empty() {
                    (claim.low, claim.high) = (Some(least), Some(most));
                }
                let bound = claim.bound.expect("a statement without one is refused");
                claim.verdict = bound.judge(Some((least, most)));
            }
            Ok([]) => claim.note = "not run".to_owned(),
            Err(why) => claim.note = format!("not judged: {why}"),
        }
        if claim.verdict == Judgement::Fail
            && let Some(cause) = self.cause.as_ref().or(self.why.as_ref())
        {
            claim.note.clone_from(cause);
        }
        claim
    }
}

#[cfg(test)]
mod tests {
    use manycore_measure::Mechanism;

    use super::*;

    fn record(sync: &str, threads: u32, value: f64) -> Measurement {
        let mechanism = Mechanism::Sync(sync.to_owned());
        Measurement { threads, ..Measurement::new("set", mechanism, "op/s", value) }
    }

    fn statement(rest: &str) -> Statement {
        let text = format!("id = \"a\"\ntext = \"b\"\nplace = \"c\"\nexpected = \"pass\"\n{rest}");
        let statement: Statement = toml::from_str(&text).unwrap();
        assert_eq!(statement.fault(), None);
        statement
    }

    fn records() -> Vec<Measurement> {
        [
            ("x", 1, 10.0),
            ("x", 2, 30.0),
            ("x", 4, 20.0),
            ("y", 1, 20.0),
            ("y", 2, 20.0),
            ("y", 4, 10.0),
        ]
        .map(|(sync, threads, value)| record(sync, threads, value))
        .to_vec()
    }

    #[test]
    fn values_are_taken_from_where_the_statement_says() {
        for (rest, value) in [
            ("of = { series = 'x', threads = 4 }", 20.0),
            ("of = { series = 'x', take = 'most' }", 30.0),
            ("of = { series = 'x', take = 'most', what = 'threads' }", 2.0),
            (
                "of = { series = 'x', threads = 4 }\nover = { series = 'x', take = 'most' }",
                20.0 / 30.0,
            ),
            ("of = { series = ['x', 'y'], threads = 1, take = 'least' }", 10.0),
            // 0.5, 1.5 and 2 times as much.
            (
                "of = { series = 'x' }\nover = { series = 'y' }\neach = ['threads']\ntake = 'most'",
                2.0,
            ),
            (
                "of = { series = 'x' }\nover = { series = 'y' }\neach = ['threads']\ntake = 'least'",
                0.5,
            ),
        ] {
            let statement = statement(&format!("{rest}\nat_least = 1"));
            assert_eq!(statement.value(&records()), Ok(value), "{rest}");
        }
    }

    #[test]
    fn what_cannot_be_taken_is_not_judged() {
        for (rest, why) in [
            ("of = { series = 'z' }", "it was not run"),
            ("of = { series = 'x' }", "several"),
            ("of = { series = 'x', threads = 1, what = 'misses' }", "`misses`"),
            ("of = { series = 'x', cpus = 1 }", "it was not run"),
        ] {
            let statement = statement(&format!("{rest}\nat_least = 1"));
            let claim = statement.judge("figure", &[&records()]);
            assert_eq!(claim.verdict, Judgement::Undecided);
            assert!(claim.note.contains(why), "{rest}: {}", claim.note);
        }
    }

    #[test]
    fn a_band_that_straddles_the_bound_decides_nothing() {
        let statement = statement("of = { series = 'x', threads = 1 }\nat_least = 10");
        let (model, lower, higher) =
            ([record("x", 1, 10.0)], [record("x", 1, 9.0)], [record("x", 1, 12.0)]);
        let verdict = |variants: &[&[Measurement]]| statement.judge("figure", variants).verdict;
        assert_eq!(verdict(&[&model]), Judgement::Pass);
        assert_eq!(verdict(&[&model, &higher]), Judgement::Pass);
        assert_eq!(verdict(&[&model, &lower, &higher]), Judgement::Undecided);
        assert_eq!(verdict(&[&lower]), Judgement::Fail);
        let claim = statement.judge("figure", &[&model, &lower, &higher]);
        assert_eq!((claim.value, claim.low, claim.high), (Some(10.0), Some(9.0), Some(12.0)));
    }
}

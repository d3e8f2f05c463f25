//! The results of the runs: each candidate against the base line, and one sentence.

use manycore_measure::paired::{Better, Comparison, Median, Protocol, Unusable, Verdict};
use manycore_measure::{interval, ratio};

use crate::rounds::Series;
use manycore_launch::failure::{Failure, Result};

/// One candidate, or the base line.
#[derive(Debug)]
pub struct Standing {
    /// The lock.
    pub lock: String,
    /// The values of the metric.
    pub value: Median,
    /// CPU time, in nanoseconds.
    pub cpu: Median,
    /// The largest resident set, in bytes.
    pub max_rss: Median,
    /// The smallest resident set that can be measured.
    pub max_rss_least: u64,
    /// Servers that had to be killed.
    pub killed: usize,
    /// The comparison with the base line; none for the base line itself.
    pub comparison: Option<Comparison>,
    /// The values, run by run.
    pub values: Vec<f64>,
}

/// The conclusion from all of them. Numbers are places in the list of standings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// This one is better than the base line, and better than all others that are.
    Winner(usize),
    /// These are better than the base line, and the best among them cannot be determined. The best
    /// figure comes first.
    Ahead(Vec<usize>),
    /// None is better than the base line, and at least one is worse.
    NoneBetter,
    /// All are as good as the base line.
    NoDifference,
    /// None is better than the base line, and for some there were too few runs to tell.
    Undecided,
}

/// The outcome of a comparison.
#[derive(Debug)]
pub struct Ranking {
    /// All, the base line first.
    pub standings: Vec<Standing>,
    /// What follows.
    pub finding: Finding,
    /// Which values are the good ones.
    pub better: Better,
}

impl Ranking {
    /// Judges series of which the first is the base line.
    pub fn of(locks: &[String], series: Vec<Series>, better: Better) -> Result<Self> {
        let protocol = Protocol::new(better);
        let values: Vec<&[f64]> = series.iter().map(|series| &series.values[..]).collect();
        let (base, others) = values.split_first().expect("there is a base line");
        let comparisons = protocol.compare_all(base, others).map_err(unusable)?;
        let finding = find(&protocol, &comparisons, &values)?;
        let comparisons = [None].into_iter().chain(comparisons.into_iter().map(Some));
        let standings = locks.iter().zip(series).zip(comparisons);
        let standings = standings.map(|((lock, series), comparison)| Standing {
            lock: lock.clone(),
            value: median(&series.values),
            cpu: median(&series.cpu),
            max_rss: median(&series.max_rss),
            max_rss_least: series.max_rss_least,
            killed: series.killed,
            comparison,
            values: series.values,
        });
        Ok(Self { standings: standings.collect(), finding, better })
    }

    /// The finding as a sentence; `metric` is the name of the value.
    pub fn sentence(&self, metric: &str) -> String {
        match &self.finding {
            Finding::Winner(number) => {
                format!(
                    "{} wins: its {}.",
                    self.standings[*number].lock,
                    self.against(*number, metric)
                )
            }
            Finding::Ahead(numbers) => {
                let lock = |&number: &usize| &self.standings[number].lock[..];
                let names: Vec<&str> = numbers.iter().map(lock).collect();
                format!(
                    "{} are better than glibc, and these runs do not tell which of them is best; of {} the {}.",
                    listed(&names),
                    names[0],
                    self.against(numbers[0], metric)
                )
            }
            Finding::NoneBetter => {
                let worse = self.with(Verdict::Slower);
                match &self.with(Verdict::NoDifference)[..] {
                    [] => format!("glibc wins: {} worse.", are(&worse)),
                    even => format!(
                        "No lock is better than glibc: {} no different, {} worse.",
                        are(even),
                        are(&worse)
                    ),
                }
            }
            Finding::NoDifference => "No difference.".to_owned(),
            Finding::Undecided => {
                let worse = match &self.with(Verdict::Slower)[..] {
                    [] => String::new(),
                    worse => format!(" ({} worse)", are(worse)),
                };
                format!(
                    "Undecided: these runs are too few, or too unlike each other, to judge {}{worse}; \
                     more with --runs or --budget.",
                    listed(&self.with(Verdict::Undecided))
                )
            }
        }
    }

    /// Fails if a lock is slower than the base line, or worse.
    pub fn none_is_worse(&self) -> Result<()> {
        match &self.with(Verdict::Slower)[..] {
            [] => Ok(()),
            worse => Err(Failure::failed(format!("{} worse than glibc", are(worse)))),
        }
    }

    fn with(&self, verdict: Verdict) -> Vec<&str> {
        let matches = |s: &&Standing| s.comparison.is_some_and(|c| c.verdict == verdict);
        self.standings.iter().filter(matches).map(|standing| &standing.lock[..]).collect()
    }

    fn against(&self, number: usize, metric: &str) -> String {
        let Some(comparison) = self.standings[number].comparison else { return String::new() };
        let (low, high) = comparison.interval.unzip();
        format!("{metric} is {} of glibc's {}", ratio(comparison.ratio), interval(low, high))
    }
}

/// `values` begins with those of the base line, which `comparisons` does not have.
fn find(protocol: &Protocol, comparisons: &[Comparison], values: &[&[f64]]) -> Result<Finding> {
    let with = |verdict| (1..values.len()).filter(move |&i| comparisons[i - 1].verdict == verdict);
    let mut ahead: Vec<usize> = with(Verdict::Faster).collect();
    ahead.sort_by(|&a, &b| {
        let order = comparisons[a - 1].ratio.total_cmp(&comparisons[b - 1].ratio);
        if protocol.better == Better::Higher { order.reverse() } else { order }
    });
    let Some((&best, rivals)) = ahead.split_first() else {
        let some = |verdict| with(verdict).next().is_some();
        return Ok(match (some(Verdict::Undecided), some(Verdict::Slower)) {
            (true, _) => Finding::Undecided,
            (false, true) => Finding::NoneBetter,
            (false, false) => Finding::NoDifference,
        });
    };
    let theirs: Vec<&[f64]> = rivals.iter().map(|&rival| values[rival]).collect();
    let against_best = protocol.compare_all(values[best], &theirs).map_err(unusable)?;
    let level = rivals.iter().zip(&against_best).filter(|(_, c)| c.verdict != Verdict::Slower);
    let level: Vec<usize> = level.map(|(&rival, _)| rival).collect();
    Ok(match &level[..] {
        [] => Finding::Winner(best),
        level => Finding::Ahead([&[best], level].concat()),
    })
}

fn median(values: &[f64]) -> Median {
    Median::of(values).expect("there is at least one run")
}

fn unusable(error: Unusable) -> Failure {
    Failure::failed(error)
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [some @ .., last] => format!("{} and {last}", some.join(", ")),
    }
}

fn are(names: &[&str]) -> String {
    format!("{} {}", listed(names), if names.len() == 1 { "is" } else { "are" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve rounds on a machine that becomes ever slower, and that disturbs each candidate by up
    /// to 10 %.
    fn ranking(levels: &[f64], better: Better) -> Ranking {
        let locks: Vec<String> =
            ["glibc", "a", "b", "c"].map(String::from)[..levels.len()].to_vec();
        let series = levels.iter().enumerate().map(|(number, level)| {
            let noise = |round: usize| 1.0 + 0.01 * ((round * 7 + number * 5) % 11) as f64;
            let at = |round: usize| level * noise(round) * (1.0 + round as f64);
            let values: Vec<f64> = (0..12).map(at).collect();
            Series { cpu: values.clone(), max_rss: values.clone(), values, ..Series::default() }
        });
        Ranking::of(&locks, series.collect(), better).unwrap()
    }

    #[test]
    fn a_winner_beats_all_others() {
        let ranking = ranking(&[10.0, 8.0, 5.0, 12.0], Better::Lower);
        assert_eq!(ranking.finding, Finding::Winner(2));
        let sentence = ranking.sentence("wall time");
        assert!(sentence.starts_with("b wins: its wall time is 0."), "{sentence}");
    }

    #[test]
    fn two_that_are_level_do_not_win() {
        let ranking = ranking(&[10.0, 20.0, 20.0], Better::Higher);
        assert!(matches!(&ranking.finding, Finding::Ahead(both) if both.len() == 2), "{ranking:?}");
        assert!(ranking.sentence("rate").contains("do not tell which of them is best"));
    }

    #[test]
    fn without_a_difference_there_is_none() {
        let ranking = ranking(&[10.0, 10.0], Better::Higher);
        assert_eq!(ranking.finding, Finding::NoDifference);
        assert_eq!(ranking.sentence("rate"), "No difference.");
    }

    #[test]
    fn what_is_known_is_said_of_the_undecided() {
        let locks = ["glibc", "a", "b"].map(String::from);
        let base: Vec<f64> = (0..8).map(|round| 10.0 + f64::from(round % 3)).collect();
        let wild = base.iter().enumerate().map(|(i, v)| if i % 2 == 0 { v * 3.0 } else { v / 3.0 });
        let series = [base.clone(), wild.collect(), base.iter().map(|v| v / 2.0).collect()];
        let series = series.map(|values| Series {
            cpu: values.clone(),
            max_rss: values.clone(),
            values,
            ..Series::default()
        });
        let ranking = Ranking::of(&locks, series.into(), Better::Higher).unwrap();
        let sentence = ranking.sentence("rate");
        assert!(sentence.contains("to judge a (b is worse); more"), "{sentence}");
    }

    #[test]
    fn the_base_line_can_win() {
        let sentence = |levels: &[f64]| ranking(levels, Better::Higher).sentence("rate");
        assert_eq!(sentence(&[10.0, 5.0]), "glibc wins: a is worse.");
        let gate = |levels: &[f64]| ranking(levels, Better::Higher).none_is_worse();
        assert_eq!(gate(&[10.0, 5.0, 20.0]).unwrap_err().to_string(), "a is worse than glibc");
        assert!(gate(&[10.0, 20.0]).is_ok() && gate(&[10.0, 10.0]).is_ok());
        assert_eq!(
            sentence(&[10.0, 5.0, 10.0]),
            "No lock is better than glibc: b is no different, a is worse."
        );
    }
}

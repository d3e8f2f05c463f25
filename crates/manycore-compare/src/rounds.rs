//! The number of runs, and running them: interleaved, in an order drawn for each round.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use manycore_measure::paired::Schedule;

use crate::metric::Metric;
use crate::trial::{Outcome, Plan};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;
use manycore_launch::terminal::Terminal;

/// Runs of each candidate, if there is time.
const USUAL: usize = 31;

/// How long to go on.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// This many runs of each candidate.
    Runs(usize),
    /// The usual number, or as many as fit into this time, but never fewer than a verdict needs.
    Budget(Duration),
}

/// One candidate's values, run by run. The same index is the same round for all candidates.
#[derive(Debug, Default)]
pub struct Series {
    /// Values of the metric.
    pub values: Vec<f64>,
    /// CPU time, in nanoseconds.
    pub cpu: Vec<f64>,
    /// The largest resident sets, in bytes.
    pub max_rss: Vec<f64>,
    /// The smallest resident set that can be measured.
    pub max_rss_least: u64,
    /// Servers that had to be killed.
    pub killed: usize,
    /// The use of the CPU in the warm-up, which does not count as a measurement.
    pub rehearsed: Option<Split>,
}

/// The use of the CPU, in seconds, from the start of a program to its end.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// In the kernel.
    pub kernel: f64,
    /// In the program and its libraries.
    pub user: f64,
    /// In waits for locks, in both; estimated from samples.
    pub lock_spin: f64,
    /// Whether waits were counted: those for glibc's own locks are not.
    pub counted: bool,
}

/// The fewest runs for which a verdict on this many candidates is possible, not counting the base
/// line.
///
/// The ranks of n pairs all point one way by chance with probability 2^(1-n). All intervals
/// together may err with a probability of 5 %.
pub fn fewest(candidates: usize) -> usize {
    1 + (candidates.max(1) as f64 / 0.05).log2().ceil() as usize
}

/// A comparison to be run.
#[derive(Debug)]
pub struct Rounds<'a> {
    /// What a run is.
    pub plan: &'a Plan,
    /// The number that counts.
    pub metric: &'a Metric,
    /// The locks, the base line first.
    pub candidates: &'a [Interposition],
    /// How long to go on.
    pub limit: Limit,
    /// The seed of the order.
    pub seed: u64,
}

impl Rounds<'_> {
    /// One warm-up of each, then the rounds.
    pub fn measure(&self, inbox: &mut Inbox, terminal: &Terminal) -> Result<Vec<Series>> {
        let started = Instant::now();
        let bar = terminal.progress(self.candidates.len() as u64);
        let mut series: Vec<Series> = Vec::new();
        for candidate in self.candidates {
            bar.set_message(format!("{} (warm-up)", candidate.lock()));
            let split = self.warm_up(candidate, inbox, &bar, terminal);
            let split = split
                .map_err(|failure| failure.during(format!("{} (warm-up)", candidate.lock())))?;
            series.push(Series { rehearsed: Some(split), ..Series::default() });
            bar.inc(1);
        }
        let others = self.candidates.len() - 1;
        let (rounds, note) = self.limit.rounds(started.elapsed(), others);
        bar.suspend(|| note.iter().for_each(|note| terminal.note(note)));
        bar.set_length(((rounds + 1) * self.candidates.len()) as u64);

        let schedule = Schedule::new(self.candidates.len(), self.seed).take(rounds);
        for (index, order) in schedule.enumerate() {
            if self.limit.is_over(index, started.elapsed(), others) {
                break;
            }
            for number in order {
                let lock = self.candidates[number].lock();
                bar.set_message(lock.to_string());
                let (value, outcome) =
                    self.run(&self.candidates[number], inbox).map_err(|failure| {
                        failure.during(format!("{lock} (run {} of {rounds})", index + 1))
                    })?;
                terminal.say(format_args!("{lock}: {value} in {:.3?}", outcome.wall));
                series[number].add(value, &outcome);
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        Ok(series)
    }

    /// The first run of a candidate, which also shows whether it can make a difference at all.
    fn warm_up(
        &self,
        candidate: &Interposition,
        inbox: &mut Inbox,
        bar: &ProgressBar,
        terminal: &Terminal,
    ) -> Result<Split> {
        let (outcome, seen) = self.plan.rehearse(candidate, inbox)?;
        self.metric.value(&outcome)?;
        let split = Split {
            kernel: outcome.kernel.as_secs_f64(),
            user: outcome.cpu.saturating_sub(outcome.kernel).as_secs_f64(),
            lock_spin: seen.lock_spin.as_secs_f64(),
            counted: seen.acquired > 0,
        };
        if candidate.lock().is_glibc() || split.counted {
            return Ok(split);
        }
        if seen.processes == 0 {
            return Err(Failure::bad_input(
                "the preload library was in none of the program's processes",
                "see that nothing on the way to the program clears LD_PRELOAD",
            ));
        }
        bar.suspend(|| {
            terminal.note(format_args!(
                "{}: the program took no pthread lock, so there is none to replace",
                candidate.lock()
            ));
        });
        Ok(split)
    }

    fn run(&self, candidate: &Interposition, inbox: &mut Inbox) -> Result<(f64, Outcome)> {
        let outcome = self.plan.run(candidate, inbox)?;
        Ok((self.metric.value(&outcome)?, outcome))
    }
}

impl Limit {
    /// The number of rounds, and a remark about it for the user, given the duration of the warm-up:
    /// about as long as a round. `others` are the candidates without the base line.
    fn rounds(self, warm_up: Duration, others: usize) -> (usize, Option<String>) {
        let budget = match self {
            Self::Runs(runs) => return (runs, None),
            Self::Budget(budget) => budget,
        };
        let left = budget.saturating_sub(warm_up);
        let fitting = (left.as_secs_f64() / warm_up.as_secs_f64().max(1e-9)) as usize;
        let fewest = fewest(others);
        if fitting >= USUAL {
            return (USUAL, None);
        }
        if fitting < fewest {
            let note = format!(
                "{fewest} runs of each, the fewest for a verdict: about {}, more than the budget of {}",
                in_seconds(warm_up * fewest as u32),
                in_seconds(budget)
            );
            return (fewest, Some(note));
        }
        let note = format!(
            "about {fitting} runs of each, what fits into {} (for {USUAL}: --budget {})",
            in_seconds(budget),
            in_seconds(warm_up * (USUAL as u32 + 2))
        );
        (fitting, Some(note))
    }

    /// Whether the budget is used up although fewer rounds are done than were planned, because
    /// later runs took longer.
    fn is_over(self, done: usize, elapsed: Duration, others: usize) -> bool {
        match self {
            Self::Runs(_) => false,
            Self::Budget(budget) => done >= fewest(others) && elapsed > budget,
        }
    }
}

impl Series {
    fn add(&mut self, value: f64, outcome: &Outcome) {
        self.values.push(value);
        self.cpu.push(outcome.cpu.as_nanos() as f64);
        self.max_rss.push(outcome.max_rss as f64);
        self.max_rss_least = self.max_rss_least.max(outcome.max_rss_least);
        self.killed += usize::from(outcome.killed);
    }
}

/// A time as --budget takes it: whole seconds, without blanks.
fn in_seconds(time: Duration) -> String {
    let whole = Duration::from_secs_f64(time.as_secs_f64().ceil());
    humantime::format_duration(whole).to_string().replace(' ', "")
}

#[cfg(test)]
mod tests {
    use manycore_measure::paired::{Better, Protocol, Verdict};

    use super::*;

    #[test]
    fn a_budget_bounds_the_runs_and_is_stated() {
        let seconds = Duration::from_secs;
        let budget = Limit::Budget(seconds(60));
        assert_eq!(budget.rounds(seconds(1), 3), (31, None));
        let (rounds, note) = budget.rounds(seconds(5), 3);
        assert_eq!(rounds, 11);
        assert_eq!(
            note.unwrap(),
            "about 11 runs of each, what fits into 1m (for 31: --budget 2m45s)"
        );
        let (rounds, note) = budget.rounds(seconds(20), 3);
        assert_eq!(rounds, 7);
        assert!(
            note.unwrap()
                .contains("the fewest for a verdict: about 2m20s, more than the budget of 1m")
        );
        assert_eq!(Limit::Runs(3).rounds(seconds(100), 3), (3, None));

        assert!(!budget.is_over(6, seconds(500), 3), "too few for a verdict");
        assert!(!budget.is_over(8, seconds(59), 3));
        assert!(budget.is_over(8, seconds(61), 3));
        assert!(!Limit::Runs(9).is_over(8, seconds(500), 3));
    }

    #[test]
    fn the_fewest_runs_allow_a_verdict_and_one_less_does_not() {
        for candidates in 1..20 {
            let verdict = |runs: usize| {
                let (base, other) = (vec![1.0; runs], vec![2.0; runs]);
                let all = vec![&other[..]; candidates];
                Protocol::new(Better::Higher).compare_all(&base, &all).unwrap()[0].verdict
            };
            assert_eq!(verdict(fewest(candidates)), Verdict::Faster, "{candidates}");
            assert_eq!(verdict(fewest(candidates) - 1), Verdict::Undecided, "{candidates}");
        }
    }
}

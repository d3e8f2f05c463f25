//! How long it is still going to take.
//!
//! If a simulation has run before, with any version of the command, its time is known. For a new
//! one, the estimate is the time per simulated second of a thread in other simulations of the same
//! mechanism, or otherwise of any. The simulations since the start correct both: this machine may
//! be slower, or busy.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::cache::{Cache, Took};
use super::job::Job;

/// The rest of a plan, and its expected duration. Clones share it.
#[derive(Clone, Debug)]
pub struct Outlook(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// By the key of the job.
    left: HashMap<String, Left>,
    rates: Rates,
    /// The time that finished simulations were expected to take, and the time that they took.
    expected: f64,
    took: f64,
    workers: f64,
}

#[derive(Debug)]
struct Left {
    kind: String,
    thread_seconds: f64,
    /// What it took before, in seconds.
    known: Option<f64>,
}

/// Simulated seconds of threads, and the seconds that they took.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    thread_seconds: f64,
    seconds: f64,
}

#[derive(Debug, Default)]
struct Rates {
    of_kind: BTreeMap<String, Rate>,
    all: Rate,
}

impl Rates {
    fn add(&mut self, kind: &str, thread_seconds: f64, seconds: f64) {
        let of_kind = self.of_kind.entry(kind.to_owned()).or_default();
        for rate in [of_kind, &mut self.all] {
            rate.thread_seconds += thread_seconds;
            rate.seconds += seconds;
        }
    }

    /// The expected time for this many simulated seconds of a kind; `None` if nothing is known.
    fn expect(&self, kind: &str, thread_seconds: f64) -> Option<f64> {
        let rate = self.of_kind.get(kind).unwrap_or(&self.all);
        (rate.thread_seconds > 0.0).then(|| thread_seconds * rate.seconds / rate.thread_seconds)
    }
}

impl Left {
    fn expect(&self, rates: &Rates) -> Option<f64> {
        self.known.or_else(|| rates.expect(&self.kind, self.thread_seconds))
    }
}

impl Outlook {
    /// The outlook of these jobs, with this many workers. Cached jobs take no time.
    pub(crate) fn new(jobs: &[Job], cache: Option<&Cache>, workers: usize) -> Self {
        let past: HashMap<String, Took> = cache.map(Cache::past).unwrap_or_default();
        let mut rates = Rates::default();
        past.values().for_each(|took| rates.add(&took.kind, took.thread_seconds, took.seconds));
        let missing = jobs.iter().filter(|job| !cache.is_some_and(|cache| cache.has(job)));
        let left = |job: &Job| {
            let key = job.key();
            let known = past.get(&key).map(|took| took.seconds);
            (key, Left { kind: job.kind(), thread_seconds: job.thread_seconds(), known })
        };
        let left = missing.map(left).collect();
        let workers = workers.max(1) as f64;
        Self(Arc::new(Mutex::new(State { left, rates, expected: 0.0, took: 0.0, workers })))
    }

    /// Records that a job was simulated in this many seconds.
    pub(crate) fn done(&self, job: &Job, seconds: f64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(left) = state.left.remove(&job.key()) else { return };
        if let Some(expected) = left.expect(&state.rates) {
            state.expected += expected;
            state.took += seconds;
        }
        state.rates.add(&left.kind, left.thread_seconds, seconds);
    }

    /// The remaining simulations, and their expected seconds; `None` if nothing is known yet.
    pub fn left(&self) -> (usize, Option<f64>) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sum: Option<f64> = state.left.values().map(|left| left.expect(&state.rates)).sum();
        // A minute is added to both, because the first few simulations say little about the rest.
        let correction = (state.took + 60.0) / (state.expected + 60.0);
        (state.left.len(), sum.map(|sum| sum * correction / state.workers))
    }
}

impl std::fmt::Display for Outlook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.left() {
            (0, _) => f.write_str("nothing left"),
            (count, None) => write!(f, "{count} left"),
            (count, Some(seconds)) if seconds < 90.0 => {
                write!(f, "{count} left, about {seconds:.0} s")
            }
            (count, Some(seconds)) => write!(f, "{count} left, about {:.0} min", seconds / 60.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(kind: &str, thread_seconds: f64, known: Option<f64>) -> Left {
        Left { kind: kind.into(), thread_seconds, known }
    }

    #[test]
    fn what_is_known_goes_before_its_kind_and_that_before_all() {
        let mut rates = Rates::default();
        assert_eq!(left("a", 1.0, None).expect(&rates), None);
        rates.add("a", 2.0, 10.0);
        rates.add("b", 2.0, 2.0);
        assert_eq!(left("a", 1.0, Some(7.0)).expect(&rates), Some(7.0));
        assert_eq!(left("a", 1.0, None).expect(&rates), Some(5.0));
        assert_eq!(left("c", 1.0, None).expect(&rates), Some(3.0));
    }

    #[test]
    fn what_was_simulated_since_corrects_it() {
        let mut rates = Rates::default();
        rates.add("a", 1.0, 60.0);
        let all = [("x", left("a", 1.0, None)), ("y", left("a", 2.0, None))];
        let state = |expected, took| State {
            left: all
                .iter()
                .map(|(key, l)| ((*key).to_owned(), left(&l.kind, l.thread_seconds, l.known)))
                .collect(),
            rates: Rates { all: rates.all, of_kind: rates.of_kind.clone() },
            expected,
            took,
            workers: 2.0,
        };
        let seconds = |state| Outlook(Arc::new(Mutex::new(state))).left();
        assert_eq!(seconds(state(0.0, 0.0)), (2, Some(90.0)));
        // Everything took three times as long as was expected.
        assert_eq!(seconds(state(60.0, 300.0)), (2, Some(270.0)));
    }
}

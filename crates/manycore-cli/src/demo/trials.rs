//! The server under each lock, and repaired: interleaved runs, judged against the unchanged server.

use std::time::{Duration, Instant};

use manycore_measure::paired::{Better, Comparison, Median, Protocol, Schedule};

use crate::demo::server::{self, Server};
use manycore_compare::trial::Plan;
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;
use manycore_launch::spec::Spec;
use manycore_launch::terminal::Terminal;

/// How long one run takes.
const RUN_SECONDS: f64 = 0.6;
/// The locks to try, as far as they exist.
const LOCKS: [&str; 3] = ["futex", "hybrid", "adaptive"];
/// On a busy machine there are fewer rounds, because the demonstration should take less than a
/// minute.
const TIME_MAX: Duration = Duration::from_secs(45);

/// A way to run the server.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The lock.
    pub lock: String,
    /// Whether the checks are done outside of the lock.
    pub repaired: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// How it was run.
    pub candidate: Candidate,
    /// Batches a second.
    pub rate: Median,
    /// How many runs there were.
    pub runs: usize,
    /// The comparison with the unchanged server; `None` for the unchanged server itself.
    pub comparison: Option<Comparison>,
}

/// All candidates: first the unchanged server, then the server under other locks, and last the
/// repaired one.
pub fn run(
    server: &Server,
    rounds: usize,
    inbox: &mut Inbox,
    terminal: &Terminal,
) -> Result<Vec<Tried>> {
    let started = Instant::now();
    let candidates = candidates()?;
    let plans: Vec<Plan> =
        candidates.iter().map(|(candidate, _)| plan(server, candidate.repaired)).collect();
    let bar = terminal.progress((rounds * candidates.len()) as u64);
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); candidates.len()];
    let mut slowest = Duration::ZERO;
    for order in Schedule::new(candidates.len(), 1).take(rounds) {
        let began = Instant::now();
        if started.elapsed() + slowest > TIME_MAX && !rates[0].is_empty() {
            break;
        }
        for number in order {
            let (candidate, interposition) = &candidates[number];
            bar.set_message(candidate.to_string());
            let outcome = plans[number]
                .run(interposition, inbox)
                .map_err(|failure| failure.during(candidate))?;
            rates[number].push(server::rate(&outcome.output)?);
            bar.inc(1);
        }
        slowest = slowest.max(began.elapsed());
    }
    bar.finish_and_clear();
    judge(candidates.into_iter().map(|(candidate, _)| candidate).collect(), &rates)
}

fn candidates() -> Result<Vec<(Candidate, Interposition)>> {
    let glibc = |repaired| -> Result<_> {
        let spec = Spec::glibc();
        Ok((Candidate { lock: spec.to_string(), repaired }, Interposition::new(spec)?))
    };
    let mut candidates = vec![glibc(false)?];
    for spec in LOCKS.iter().filter_map(|name| name.parse::<Spec>().ok()) {
        let candidate = Candidate { lock: spec.to_string(), repaired: false };
        candidates.push((candidate, Interposition::new(spec)?));
    }
    candidates.push(glibc(true)?);
    Ok(candidates)
}

fn plan(server: &Server, repaired: bool) -> Plan {
    let command = server.command(RUN_SECONDS, repaired);
    Plan { command, timeout: Duration::from_secs(30), ..Plan::default() }
}

fn judge(candidates: Vec<Candidate>, rates: &[Vec<f64>]) -> Result<Vec<Tried>> {
    let others: Vec<&[f64]> = rates[1..].iter().map(Vec::as_slice).collect();
    let comparisons =
        Protocol::new(Better::Higher).compare_all(&rates[0], &others).map_err(Failure::failed)?;
    let comparisons = [None].into_iter().chain(comparisons.into_iter().map(Some));
    let tried = candidates.into_iter().zip(rates).zip(comparisons);
    Ok(tried
        .map(|((candidate, rates), comparison)| {
            let rate = Median::of(rates).expect("each ran at least once");
            Tried { candidate, rate, runs: rates.len(), comparison }
        })
        .collect())
}

impl std::fmt::Display for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.repaired {
            true => write!(f, "{}, repaired", self.lock),
            false => f.write_str(&self.lock),
        }
    }
}

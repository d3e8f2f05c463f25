//! Candidates at many points, in rounds: the measuring protocol applied to slices in worker
//! processes.
//!
//! In a round every candidate runs one slice at every point. Points come in random order. At each
//! point the candidates run one after another in random order, so the slices of a ratio are at most
//! seconds apart. Each candidate has a process of its own, which lives for a round.

use std::collections::BTreeMap;
use std::time::Duration;

use manycore_measure::paired::{Rounds, Schedule, Stopwatch};

use crate::disturbance::Watch;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::worker::{Order, Worker, WorkerProcesses};

/// Candidates against each other: what runs in a slice.
pub(crate) trait Contest {
    /// A point of the comparison: a number of threads, a mix of operations.
    type Point;
    /// One of the candidates.
    type Candidate;
    /// A slice.
    type Slice: Order;

    /// Starts a worker for a candidate.
    fn start(&self, candidate: &Self::Candidate) -> Result<Worker, Failure>;

    /// The slice of a candidate at a point in a round.
    fn slice(&self, point: &Self::Point, candidate: &Self::Candidate, round: u32) -> Self::Slice;

    /// The point in a few words, for progress reports.
    fn in_words(&self, point: &Self::Point, candidate: &Self::Candidate) -> String;

    /// Whether the slice has left the worker unable to run another.
    fn ends_worker(&self, _: &<Self::Slice as Order>::Answer) -> bool {
        false
    }
}

/// How candidates are measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Campaign {
    pub rounds: Rounds,
    /// The seed for the order of points and candidates.
    pub seed: u64,
    /// Whether to show progress, if standard error is a terminal.
    pub progress: bool,
}

/// What a campaign measured.
#[derive(Debug)]
pub(crate) struct Samples<P, C, S> {
    pub points: Vec<P>,
    pub candidates: Vec<C>,
    /// By point, candidate and round.
    slices: Vec<Vec<Vec<S>>>,
    /// Candidates that failed, with the reason.
    failed: BTreeMap<usize, Failure>,
    pub seed: u64,
    /// The share of the CPUs' time that other programs used, in percent.
    pub others: Option<f64>,
}

/// What a contest's campaign measures.
pub(crate) type SamplesOf<C> = Samples<
    <C as Contest>::Point,
    <C as Contest>::Candidate,
    <<C as Contest>::Slice as Order>::Answer,
>;

/// The base line's place among the candidates.
pub(crate) const BASE: usize = 0;

impl Campaign {
    /// Runs the whole campaign. A candidate that fails is left out from then on. If the base line
    /// fails, the campaign fails.
    pub fn run<C: Contest>(
        self,
        contest: &C,
        points: Vec<C::Point>,
        candidates: Vec<C::Candidate>,
    ) -> Result<SamplesOf<C>, Failure> {
        let mut point_order = Schedule::new(points.len(), self.seed);
        let mut candidate_order = Schedule::new(candidates.len(), !self.seed);
        let mut stopwatch = Stopwatch::new(self.rounds);
        let progress =
            Progress::rounds(self.progress, points.len() * candidates.len(), self.rounds);
        let mut samples = Samples::new(points, candidates, self.seed);
        let watch = Watch::new();
        while stopwatch.another() {
            let round = stopwatch.rounds;
            let mut workers = WorkerProcesses::new(samples.candidates.len());
            for point in point_order.next().unwrap_or_default() {
                for number in candidate_order.next().unwrap_or_default() {
                    let (at, candidate) = (&samples.points[point], &samples.candidates[number]);
                    progress.step(format!("round {round}: {}", contest.in_words(at, candidate)));
                    if samples.failed.contains_key(&number) {
                        continue;
                    }
                    let slice = contest.slice(at, candidate, round);
                    let answer = workers.execute(number, || contest.start(candidate), &slice);
                    if answer.as_ref().is_ok_and(|answer| contest.ends_worker(answer)) {
                        workers.end(number);
                    }
                    samples.take(point, number, answer)?;
                }
            }
        }
        samples.others = watch.others();
        Ok(samples)
    }
}

impl<P, C, S> Samples<P, C, S> {
    fn new(points: Vec<P>, candidates: Vec<C>, seed: u64) -> Self {
        let of_point = |_| candidates.iter().map(|_| Vec::new()).collect();
        let slices = points.iter().map(of_point).collect();
        Self { points, candidates, slices, failed: BTreeMap::new(), seed, others: None }
    }

    fn take(
        &mut self,
        point: usize,
        candidate: usize,
        slice: Result<S, Failure>,
    ) -> Result<(), Failure> {
        match slice {
            Ok(slice) => self.slices[point][candidate].push(slice),
            Err(failure) if candidate == BASE => return Err(failure),
            Err(failure) => drop(self.failed.insert(candidate, failure)),
        }
        Ok(())
    }

    /// Made-up samples, by point, candidate and round.
    #[cfg(test)]
    pub fn of(points: Vec<P>, candidates: Vec<C>, slices: Vec<Vec<Vec<S>>>) -> Self {
        Self { slices, ..Self::new(points, candidates, 1) }
    }

    /// The slices of a candidate at a point, by round; `None` if it failed.
    pub fn at(&self, point: usize, candidate: usize) -> Option<&[S]> {
        (!self.failed.contains_key(&candidate)).then(|| self.slices[point][candidate].as_slice())
    }

    /// The slices of the candidates at a point that have not failed, by round.
    pub fn present(&self, point: usize) -> Vec<(usize, &[S])> {
        let candidates = 0..self.candidates.len();
        candidates.filter_map(|number| Some((number, self.at(point, number)?))).collect()
    }

    /// A line for each candidate that failed.
    pub fn failures(&self) -> Vec<String> {
        self.failed.values().map(Failure::to_string).collect()
    }
}

/// A value of each slice.
pub(crate) fn values<S>(slices: &[S], value: impl Fn(&S) -> f64) -> Vec<f64> {
    slices.iter().map(value).collect()
}

/// All candidates, the base line first: ours, then those of other libraries that are not named
/// twice.
pub(crate) fn subjects(syncs: &[String], against: &[String]) -> Vec<String> {
    let others = against.iter().filter(|peer| !syncs.contains(peer));
    syncs.iter().chain(others).cloned().collect()
}

/// A fault of the campaign that does not depend on its workload; `None` if there is none.
pub(crate) fn fault(
    slice: Duration,
    operations: Option<u64>,
    rounds: Rounds,
) -> Option<&'static str> {
    let faults = [
        (slice < Duration::from_millis(1), "a slice needs at least 1 ms"),
        (operations == Some(0), "no operations: give at least 1"),
        (rounds == Rounds::Count(0), "no rounds: at least 6 give an interval"),
    ];
    faults.into_iter().find_map(|(wrong, fault)| wrong.then_some(fault))
}

//! Many locks at many points, in rounds: the measuring protocol applied to slices.
//!
//! In a round every lock runs one slice at every point. Points come in random order, and at each point the locks
//! run one after another in random order, so that the slices of which a ratio is taken lie seconds apart at most.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::disturbance::Watch;
use crate::failure::Failure;
use crate::mix::Mix;
use crate::progress::Progress;
use crate::slice::{Pinning, Settings, Slice};
use crate::work::{Length, Pace};
use crate::worker::{Command, Subject, Worker};
use manycore_measure::paired::{MAX_PAIRS, Schedule};

/// How often to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// So many times.
    Count(u32),
    /// As often as there is time for, at least once.
    Within(Duration),
}

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Threads.
    pub threads: u32,
    /// Locks.
    pub locks: u32,
    /// Time in a section.
    pub section: Length,
    /// Time between two sections.
    pub outside: Length,
    /// The share of sections that only read, in percent.
    pub reads: f64,
    /// Cache lines that a section reads and writes.
    pub data: u32,
}

impl Point {
    /// What its threads do.
    pub(crate) fn mix(&self) -> Mix {
        Mix::uniform(self.locks, self.section, self.outside, self.reads).with_data(self.data)
    }
}

/// All that a campaign needs to know.
#[derive(Debug)]
pub(crate) struct Campaign<'a> {
    pub points: Vec<Point>,
    /// The first one is the base line.
    pub subjects: Vec<Subject>,
    /// The length of a slice with few threads per CPU.
    pub slice: Duration,
    pub rounds: Rounds,
    pub pinning: Pinning,
    pub seed: u64,
    pub worker: &'a Command,
    /// Whether to show progress, if standard error is a terminal.
    pub progress: bool,
}

/// What a campaign measured.
#[derive(Debug)]
pub(crate) struct Samples {
    pub points: Vec<Point>,
    pub subjects: Vec<Subject>,
    /// By point, subject and round.
    slices: Vec<Vec<Vec<Slice>>>,
    /// Subjects that failed, with the reason.
    failed: BTreeMap<usize, Failure>,
    pub seed: u64,
    /// The share of the CPUs' time that other programs used, in percent.
    pub others: Option<f64>,
}

/// The base line's place among the subjects.
pub(crate) const BASE: usize = 0;

impl Campaign<'_> {
    /// Runs it all. A subject that fails is left out from then on; if it is the base line, all is in vain.
    pub fn run(self) -> Result<Samples, Failure> {
        let pace = Pace::measure();
        let mut points = Schedule::new(self.points.len(), self.seed);
        let mut subjects = Schedule::new(self.subjects.len(), !self.seed);
        let mut samples = Samples::new(&self);
        let mut stopwatch = Stopwatch::new(self.rounds);
        let steps = self.points.len() * self.subjects.len();
        let progress = Progress::rounds(self.progress, steps, self.rounds);
        let watch = Watch::new();
        while stopwatch.another() {
            let mut crew = Crew::new(&self);
            for point in points.next().unwrap_or_default() {
                let settings = self.settings(&self.points[point], pace, stopwatch.rounds);
                for subject in subjects.next().unwrap_or_default() {
                    let (round, name) = (stopwatch.rounds, &self.subjects[subject]);
                    progress.step(format!("round {round}: {name}, {} threads", settings.threads));
                    samples.take(point, subject, |subject| crew.contend(subject, &settings))?;
                }
            }
        }
        samples.others = watch.others();
        Ok(samples)
    }

    fn settings(&self, point: &Point, pace: Pace, round: u32) -> Settings {
        let cpus = crate::cpus::allowed().len() as u32;
        // Every thread should have its turn on a CPU a few times, at some milliseconds each.
        let measured = self.slice * point.threads.div_ceil(3 * cpus);
        Settings {
            threads: point.threads,
            mix: point.mix(),
            pinning: self.pinning,
            warm_up: measured / 5,
            measured,
            drain: measured.max(Duration::from_millis(100)),
            sample: sample(point),
            pace,
            seed: self.seed.wrapping_add(u64::from(round)),
        }
    }
}

/// Timing a wait takes some 20 ns: so seldom that it costs a percent, and an odd number.
fn sample(point: &Point) -> u32 {
    let cycle_ns = (point.section.mean_ns + point.outside.mean_ns).max(1.0);
    (2_000.0 / cycle_ns).ceil() as u32 | 1
}

impl Samples {
    fn new(campaign: &Campaign) -> Self {
        let of_point = || vec![Vec::new(); campaign.subjects.len()];
        Self {
            points: campaign.points.clone(),
            subjects: campaign.subjects.clone(),
            slices: campaign.points.iter().map(|_| of_point()).collect(),
            failed: BTreeMap::new(),
            seed: campaign.seed,
            others: None,
        }
    }

    /// Has a subject run a slice, unless it has failed before.
    fn take(
        &mut self,
        point: usize,
        subject: usize,
        contend: impl FnOnce(usize) -> Result<Slice, Failure>,
    ) -> Result<(), Failure> {
        if self.failed.contains_key(&subject) {
            return Ok(());
        }
        match contend(subject) {
            Ok(slice) => self.slices[point][subject].push(slice),
            Err(failure) if subject == BASE => return Err(failure),
            Err(failure) => drop(self.failed.insert(subject, failure)),
        }
        Ok(())
    }

    /// Made-up samples, by point, subject and round.
    #[cfg(test)]
    pub fn of(points: Vec<Point>, subjects: Vec<Subject>, slices: Vec<Vec<Vec<Slice>>>) -> Self {
        Self { points, subjects, slices, failed: BTreeMap::new(), seed: 1, others: None }
    }

    /// The slices of a subject at a point, by round; `None` if the subject failed.
    pub fn at(&self, point: usize, subject: usize) -> Option<&[Slice]> {
        (!self.failed.contains_key(&subject)).then(|| self.slices[point][subject].as_slice())
    }

    /// What went wrong, a line for each subject that failed.
    pub fn failures(&self) -> Vec<String> {
        self.failed.values().map(Failure::to_string).collect()
    }
}

/// The workers of a round, started when they are needed.
struct Crew<'a> {
    campaign: &'a Campaign<'a>,
    workers: Vec<Option<Worker>>,
}

impl<'a> Crew<'a> {
    fn new(campaign: &'a Campaign<'a>) -> Self {
        Self { campaign, workers: campaign.subjects.iter().map(|_| None).collect() }
    }

    fn contend(&mut self, subject: usize, settings: &Settings) -> Result<Slice, Failure> {
        let mut worker = match self.workers[subject].take() {
            Some(worker) => worker,
            None => Worker::start(self.campaign.worker, &[], &self.campaign.subjects[subject])?,
        };
        let slice = worker.contend(settings)?;
        if slice.stuck == 0 {
            self.workers[subject] = Some(worker);
        }
        Ok(slice)
    }
}

/// Decides whether there is time for another round.
pub(crate) struct Stopwatch {
    limit: Rounds,
    start: Instant,
    /// How many there were, with the one that goes on.
    pub rounds: u32,
}

impl Stopwatch {
    pub fn new(limit: Rounds) -> Self {
        Self { limit, start: Instant::now(), rounds: 0 }
    }

    pub fn another(&mut self) -> bool {
        let elapsed = self.start.elapsed();
        let more = match self.limit {
            Rounds::Count(count) => self.rounds < count,
            // Rounds are about equally long.
            Rounds::Within(budget) => self.rounds == 0 || elapsed + elapsed / self.rounds <= budget,
        };
        let more = more && (self.rounds as usize) < MAX_PAIRS;
        self.rounds += u32::from(more);
        more
    }
}

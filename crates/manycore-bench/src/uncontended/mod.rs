//! `manycore bench uncontended`: the cost of an uncontended lock.
//!
//! One thread locks and unlocks, in a process with a second thread: with a single thread, glibc
//! leaves the atomic instructions out, and no program to which locks matter is like that. Times are
//! paired with glibc's; instructions are counted exactly and do not depend on other load.

mod claims;
mod command;
mod instructions;
mod pairs;
mod render;

use std::path::PathBuf;

use manycore_measure::{Measurement, Mechanism};

use crate::contender::{self, BASE};
use crate::failure::Failure;
use crate::front::Front;
use crate::lock::unknown_lock;
use crate::metrics;
use crate::progress::Progress;
use crate::worker::{Command, Executor, Subject, Through, Worker};
use crate::workload::Workload;
pub use claims::claims;
use instructions::Counter;
use manycore_measure::paired::{Better, Median, Protocol, Schedule};
use pairs::Pairs;
pub use render::render;

/// Pairs in one run: a few milliseconds.
const PAIRS: u32 = 500_000;

/// One thread that locks and unlocks.
pub(crate) struct Uncontended;

impl Workload for Uncontended {
    fn measured(&self) -> Vec<Front> {
        vec![Front::of::<command::Options>()]
    }

    fn executors(&self, lock: &str) -> Vec<Executor> {
        vec![pairs::executor(lock)]
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of locks; empty means all locks. The base line takes part in any case.
    pub locks: Vec<String>,
    /// Also measure manycore's locks through this preload library, without and with statistics.
    pub preload: Option<PathBuf>,
    /// How often to repeat.
    pub rounds: u32,
    /// Whether to count instructions, which needs valgrind and takes about a second for each lock.
    pub instructions: bool,
    /// The seed of the order in which the locks run.
    pub seed: u64,
    /// How to start a worker.
    pub worker: Command,
    /// Whether to show progress, if standard error is a terminal.
    pub progress: bool,
}

impl Options {
    /// All locks, called as a library, 31 rounds, without instruction counts.
    pub fn new(worker: Command) -> Self {
        Self {
            locks: Vec::new(),
            preload: None,
            rounds: 31,
            instructions: false,
            seed: 1,
            worker,
            progress: false,
        }
    }
}

/// Measures; returns a record in nanoseconds for each lock, glibc's first.
pub fn run(options: &Options) -> Result<Vec<Measurement>, Failure> {
    let subjects = options.subjects()?;
    let times = time(options, &subjects)?;
    let candidates: Vec<&[f64]> = times[1..].iter().map(Vec::as_slice).collect();
    let ratios = Protocol::new(Better::Lower).compare_all(&times[0], &candidates)?;
    let mut measurements: Vec<Measurement> = subjects
        .iter()
        .zip(&times)
        .map(|(subject, times)| record(options, subject, times))
        .collect();
    for (measurement, ratio) in measurements[1..].iter_mut().zip(ratios) {
        measurement.metrics.insert("ratio".into(), metrics::ratio(&ratio));
    }
    if options.instructions {
        count_instructions(options, &subjects, &mut measurements)?;
    }
    Ok(measurements)
}

impl Options {
    /// The base line first.
    fn subjects(&self) -> Result<Vec<Subject>, Failure> {
        let ours = contender::locks().iter().map(|info| info.name);
        let every = ours.chain(contender::peers(false)).map(str::to_string);
        let asked = if self.locks.is_empty() { every.collect() } else { self.locks.clone() };
        if let Some(unknown) = asked.iter().find(|name| !contender::exists(name)) {
            return Err(unknown_lock(unknown));
        }
        if self.rounds == 0 {
            return Err(Failure::Usage("no rounds: at least 6 give an interval".into()));
        }
        let subject = |lock: &str, through| Subject { lock: lock.into(), through, shared: false };
        let mut subjects = vec![subject(BASE, Through::Native)];
        for lock in asked.iter().filter(|lock| *lock != BASE) {
            subjects.push(subject(lock, Through::Native));
            if let (Some(library), true) = (&self.preload, contender::is_inline(lock)) {
                subjects.push(subject(lock, Through::Preload(library.clone())));
                subjects.push(subject(lock, Through::PreloadWithStatistics(library.clone())));
            }
        }
        Ok(subjects)
    }
}

/// Nanoseconds of a pair, by subject and round.
fn time(options: &Options, subjects: &[Subject]) -> Result<Vec<Vec<f64>>, Failure> {
    let start = |subject: &Subject| Worker::start(&options.worker, &[], subject);
    let progress = Progress::steps(options.progress, options.rounds as usize * subjects.len());
    let mut times = vec![Vec::new(); subjects.len()];
    for round in Schedule::new(subjects.len(), options.seed).take(options.rounds as usize) {
        for subject in round {
            progress.step(format!("timing {}", subjects[subject]));
            times[subject].push(start(&subjects[subject])?.execute(&Pairs(PAIRS))?);
        }
    }
    Ok(times)
}

fn record(options: &Options, subject: &Subject, times: &[f64]) -> Measurement {
    let median = Median::of(times).unwrap_or(Median { value: f64::NAN, interval: None });
    let lock = Mechanism::Lock(subject.lock.clone());
    let mut measurement = Measurement::new("uncontended", lock, "ns", median.value);
    (measurement.low, measurement.high) =
        (median.interval.map(|i| i.0), median.interval.map(|i| i.1));
    measurement.update = Some(100.0);
    measurement.repetitions = times.len() as u32;
    measurement.seed = Some(options.seed);
    measurement.parameters.insert("through".into(), subject.through.name().into());
    measurement
}

fn count_instructions(
    options: &Options,
    subjects: &[Subject],
    measurements: &mut [Measurement],
) -> Result<(), Failure> {
    let counter = Counter::new(&options.worker)?;
    let progress = Progress::steps(options.progress, subjects.len());
    let mut base = None;
    for (subject, measurement) in subjects.iter().zip(measurements) {
        progress.step(format!("counting the instructions of {subject}"));
        let count = counter.count(subject)?;
        let exact = metrics::plain("instructions", count);
        measurement.metrics.insert("instructions".into(), exact);
        match base {
            None => base = Some(count),
            Some(base) => {
                let ratio = metrics::plain("ratio", count / base);
                measurement.metrics.insert("instructions_ratio".into(), ratio);
            }
        }
    }
    Ok(())
}

//! `manycore predict`: a program's locks on a machine that is not available.
//!
//! A [`Workload`] is made from a profile: its threads do, on average, what a thread of the program
//! did. They take the program's locks equally often, hold them for as long, and compute or sleep in
//! between. This is simulated with more and more threads, with the program's own lock and with
//! others.
//!
//! The workload models the locks, and the given number of cache lines that move with them. It does
//! not model other limits to scaling (memory bandwidth, the kernel, I/O): the program scales as
//! well as predicted, or worse.

pub mod command;
mod render;
mod usage;

use std::time::Duration;

use manycore_measure::{Measurement, Mechanism};
use manycore_sim::Model;

use crate::failure::Failure;
use crate::mix::check_data;
use crate::run_records::RunRecords;
use crate::simulated::{Finding, Job, Program, Question, SimulatorPool, record, variant};
use crate::slice::Pinning;
pub use render::render;
pub use usage::{Row, Usage, Workload};

/// A simulation lasts as long as `TURNS` sections of a thread or `SLEEPS` of its sleeps, whichever
/// is longer, but at least [`SHORTEST`] and at most [`LONGEST`].
const TURNS: f64 = 1_600.0;
const SLEEPS: f64 = 20.0;
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_secs(20);

/// What to predict.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine.
    pub machine: Model,
    /// What was observed of the program.
    pub usage: Usage,
    /// Names of locks; the first one is the program's own.
    pub locks: Vec<String>,
    /// Thread counts, each on the same number of CPUs; empty means the powers of two up to the
    /// machine's number of CPUs, and that number.
    pub threads: Vec<u32>,
    /// Simulated time that is counted; `None` means a time that suits the workload.
    pub duration: Option<Duration>,
    /// The seed of every random choice.
    pub seed: u64,
    /// The processes that simulate.
    pub pool: SimulatorPool,
}

/// What was predicted.
#[derive(Debug)]
pub struct Prediction {
    /// The workload that stands for the program.
    pub workload: Workload,
    /// The number of sections a second with the program's own lock, number of threads and number of
    /// CPUs.
    pub check: Option<f64>,
    /// Records, by lock and number of threads, and the failures.
    pub found: RunRecords,
    /// The point at which the program stops scaling with its own lock, if it does.
    pub limit: Option<Limit>,
}

/// What keeps a program from scaling.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The number of threads at which scaling ends: the first number that brings hardly any gain,
    /// or the largest requested one.
    pub threads: u32,
    /// The lock that costs most: its name.
    pub lock: String,
    /// The speedup if no thread ever had to wait for it.
    pub gain: f64,
}

/// Predicts.
pub fn run(options: &Options) -> Result<Prediction, Failure> {
    check_data(options.usage.data).map_err(Failure::Usage)?;
    let workload = Workload::of(&options.usage).map_err(Failure::Usage)?;
    let threads = options.threads()?;
    let variants = options.variants(&workload);
    let mut points: Vec<(&str, u32)> = Vec::new();
    for lock in &options.locks {
        points.extend(threads.iter().map(|threads| (lock.as_str(), *threads)));
    }
    let mut jobs = vec![options.as_observed(&workload)];
    for (lock, threads) in &points {
        let job = |(machine, workload): &(String, Workload)| {
            options.job(workload, machine, lock, *threads, *threads)
        };
        jobs.extend(variants.iter().map(job));
    }
    let mut answers = options.pool.run(&jobs).into_iter();
    let check = answers.next().and_then(Result::ok).map(|finding| finding.slice.throughput());
    let mut found = RunRecords { measurements: Vec::new(), failures: Vec::new() };
    let mut alone: Option<Vec<Finding>> = None;
    for (lock, threads) in points {
        let findings: Result<Vec<_>, _> = answers.by_ref().take(variants.len()).collect();
        match findings {
            Ok(findings) => {
                let mut record = options.record(&workload, lock, threads, &findings);
                // The work of one thread on each variant, with the program's own lock, comes first.
                if lock == options.locks[0] && threads == 1 {
                    alone = Some(findings.clone());
                }
                let ratios = alone.iter().flat_map(|alone| record::ratios(&findings, alone));
                record.metrics.extend(ratios);
                if workload.is_idle() && threads > options.usage.threads {
                    reach_down(&mut record, check.zip(alone.as_deref()));
                }
                found.measurements.push(record);
            }
            Err(error) => found.failures.push(format!("{lock}, {threads} threads: {error}")),
        }
    }
    let limit = options.limit(&workload, &found.measurements);
    if let Some(limit) = &limit {
        for record in found.measurements.iter_mut().filter(|record| limit.is_at(options, record)) {
            record.parameters.insert("limit".into(), limit.lock.as_str().into());
            record.parameters.insert("without_limit".into(), limit.gain.into());
        }
    }
    Ok(Prediction { workload, check, found, limit })
}

/// Idle threads may have waited for each other's work, like stages of a pipeline. Then more threads
/// do no more than the observed ones did, so the range reaches down to the model's result for the
/// observed number of threads.
fn reach_down(record: &mut Measurement, observed: Option<(f64, &[Finding])>) {
    let Some((check, alone)) = observed else { return };
    let as_observed = check / alone[0].slice.throughput();
    if let Some(ratio) = record.metrics.get_mut("ratio") {
        ratio.low = ratio.low.map(|low| low.min(as_observed));
    }
}

impl Limit {
    fn is_at(&self, options: &Options, record: &Measurement) -> bool {
        record.mechanism.name() == options.locks[0] && record.threads == self.threads
    }
}

impl Options {
    /// The numbers of threads, with one thread first, because the others are compared with it.
    fn threads(&self) -> Result<Vec<u32>, Failure> {
        let cpus = self.machine.machine().topology.cpus();
        let question = Question {
            machine: &self.machine,
            locks: &self.locks,
            threads: &self.threads,
            cpus: &self.threads,
            duration: self.duration,
        };
        question.check()?;
        let usual = || (0..).map(|power| 1 << power).take_while(|count| *count < cpus);
        let mut threads: Vec<u32> = match self.threads.is_empty() {
            true => usual().chain([cpus]).collect(),
            false => self.threads.iter().copied().chain([1]).collect(),
        };
        threads.sort_unstable();
        threads.dedup();
        Ok(threads)
    }

    /// Machine and workload unchanged, and then the possible variants of both.
    fn variants(&self, workload: &Workload) -> Vec<(String, Workload)> {
        let machines = variant::corners(&self.machine);
        let as_it_is = machines[0].clone();
        let of_machine = machines.into_iter().map(|machine| (machine, workload.clone()));
        let others = self.usage.others().into_iter().filter_map(|usage| Workload::of(&usage).ok());
        let of_usage = others.map(|workload| (as_it_is.clone(), workload));
        of_machine.chain(of_usage).collect()
    }

    /// The observed program, on a machine as similar as possible to the one of the observation.
    fn as_observed(&self, workload: &Workload) -> Job {
        let cpus = self.usage.cpus.clamp(1, self.machine.machine().topology.cpus());
        self.job(workload, &self.machine.to_toml(), &self.locks[0], self.usage.threads, cpus)
    }

    /// The limit of the program with its own lock, found by leaving out each of its locks in turn.
    fn limit(&self, workload: &Workload, records: &[Measurement]) -> Option<Limit> {
        let own = records.iter().filter(|record| record.mechanism.name() == self.locks[0]);
        let own: Vec<&Measurement> = own.collect();
        let full = full(&own)?;
        let alone = own.first().filter(|record| record.threads == 1)?.value;
        // The first number of threads that brings no further gain; or the last, if that is far from
        // the possible throughput of its threads.
        let is_far = |last: &&&Measurement| last.value < FAR * alone * f64::from(last.threads);
        let beyond = own.get(full + 1).or_else(|| own.last().filter(is_far))?;
        let machine = self.machine.to_toml();
        let parts = workload.parts();
        let without =
            |row: &usize| workload.without(*row).map(|(changed, each)| (*row, changed, each));
        let changed: Vec<_> = parts.iter().filter_map(without).collect();
        let job = |workload: &Workload| {
            self.job(workload, &machine, &self.locks[0], beyond.threads, beyond.threads)
        };
        let jobs: Vec<Job> = changed.iter().map(|(_, workload, _)| job(workload)).collect();
        let answers = self.pool.run(&jobs).into_iter().zip(&changed);
        let gains = answers.filter_map(|(answer, (row, _, each))| {
            Some((*row, answer.ok()?.slice.throughput() * each / beyond.value))
        });
        let most = gains.max_by(|a, b| a.1.total_cmp(&b.1));
        // Without its only lock, every thread does what one does alone.
        let only = || Some((*parts.first()?, alone * f64::from(beyond.threads) / beyond.value));
        let most = if changed.is_empty() { only() } else { most };
        let (row, gain) = most.filter(|(_, gain)| *gain > 1.0)?;
        let lock = self.usage.locks[row].name.clone();
        Some(Limit { threads: beyond.threads, lock, gain })
    }

    fn job(&self, workload: &Workload, machine: &str, lock: &str, threads: u32, cpus: u32) -> Job {
        Job {
            machine: machine.to_owned(),
            cpus: Some(cpus),
            mechanism: lock.to_owned(),
            threads,
            program: Program::of(&workload.mix),
            measured: self.duration.unwrap_or_else(|| usual_duration(workload)),
            pinning: Pinning::Auto,
            seed: self.seed,
            every_turn: false,
            patient: threads <= cpus,
        }
    }

    fn record(
        &self,
        workload: &Workload,
        lock: &str,
        threads: u32,
        findings: &[Finding],
    ) -> Measurement {
        let mut record = record::of("predict", Mechanism::Lock(lock.to_owned()), findings, 1.0);
        record.threads = threads;
        record.machine.clone_from(&self.machine.name);
        record.seed = Some(self.seed);
        let mix = &workload.mix;
        let numbers = [
            ("cpus", f64::from(threads)),
            ("locks", mix.locks.len() as f64),
            ("section_ns", mix.section_mean_ns()),
            ("outside_ns", mix.outside.mean_ns),
            ("sections", f64::from(mix.sections)),
            ("think_ns", mix.think_ns),
            ("observed", workload.observed),
        ];
        let numbers = numbers.map(|(name, number)| (name.to_owned(), number.into()));
        record.parameters.extend(numbers);
        record
    }
}

/// A throughput of at least this share of the maximum counts as the maximum: more threads gain
/// nothing.
const FULL: f64 = 0.9;

/// Below this share of the throughput that would be possible with each thread alone on a machine,
/// the program does not scale.
const FAR: f64 = 0.5;

/// The index, among a lock's records by ascending number of threads, of the first record with
/// nearly the highest value.
fn full(records: &[&Measurement]) -> Option<usize> {
    let most = records.iter().map(|record| record.value).fold(0.0, f64::max);
    records.iter().position(|record| record.value >= FULL * most)
}

fn usual_duration(workload: &Workload) -> Duration {
    let mix = &workload.mix;
    let turn = mix.section_mean_ns() + mix.outside.mean_ns;
    let until_sleep = turn * f64::from(mix.sections) + mix.think_ns;
    let sleeps = if mix.think_ns > 0.0 { SLEEPS * until_sleep } else { 0.0 };
    Duration::from_nanos((TURNS * turn).max(sleeps) as u64).clamp(SHORTEST, LONGEST)
}

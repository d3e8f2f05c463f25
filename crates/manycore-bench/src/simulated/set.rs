//! `manycore sim set`: threads use a set on a simulated machine, by several mechanisms.
//!
//! What is done is what [`bench set`](crate::set) does. The first thread fills the set, which takes simulated time that is not
//! counted. Beside the accesses to the set, an operation costs [`OPERATION_NS`]: an assumption, the same for all mechanisms.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use manycore_report::{Measurement, Mechanism};
use manycore_sim::{Machine, Model, Simulation, thread};
use manycore_simulated::sync::tuning;

use super::crew::Crew;
use super::job::{self, Finding, Job};
use super::question::Question;
use super::stage::{Count, Window};
use super::{record, variant};
use crate::failure::Failure;
use crate::lock::Found;
use crate::mix::Mix;
use crate::set::contenders::{self, AnySet};
use crate::set::{Operations, Task, Workload, apply, describe};
use crate::slice::{Outcome, Pinning, Settings, Slice};
use crate::waits::Waits;
use crate::work::{Length, Pace};

/// What an operation takes beside its accesses: drawing it, the loop, calls, comparisons.
pub const OPERATION_NS: f64 = 5.0;

/// The usual time that is simulated.
const DURATION: Duration = Duration::from_millis(1);

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine.
    pub machine: Model,
    /// How many of its CPUs the threads may use; all if nothing is said.
    pub cpus: Option<u32>,
    /// What threads do.
    pub workload: Workload,
    /// Simulated time that is counted.
    pub duration: Duration,
    /// Which CPUs the threads run on.
    pub pinning: Pinning,
    /// Whether to vary what nobody knows about the machine.
    pub sweep: bool,
    /// Who does it.
    pub crew: Crew,
}

impl Options {
    /// The usual workload, for a millisecond.
    pub fn new(machine: Model, crew: Crew) -> Self {
        Self {
            machine,
            cpus: None,
            workload: Workload::default(),
            duration: DURATION,
            pinning: Pinning::Auto,
            sweep: false,
            crew,
        }
    }
}

/// Simulates.
pub fn run(options: &Options) -> Result<Found, Failure> {
    options.check()?;
    let (points, syncs) = (options.workload.points(), &options.workload.syncs);
    let machines = match options.sweep {
        true => variant::sweep(&options.machine),
        false => variant::alone(&options.machine),
    };
    let mut jobs = Vec::new();
    for point in &points {
        for sync in syncs {
            jobs.extend(machines.iter().map(|machine| options.job(point, sync, machine)));
        }
    }
    let mut answers = options.crew.run(&jobs).into_iter();
    let mut found = Found { measurements: Vec::new(), failures: Vec::new() };
    for point in &points {
        let mut base: Option<Vec<Finding>> = None;
        for (number, sync) in syncs.iter().enumerate() {
            let variants: Vec<_> = answers.by_ref().take(machines.len()).collect();
            match variants.into_iter().collect::<Result<Vec<Finding>, String>>() {
                Ok(findings) => {
                    let record = options.record(point, sync, &findings, base.as_deref());
                    found.measurements.push(record);
                    if number == 0 {
                        base = Some(findings);
                    }
                }
                Err(error) => {
                    found.failures.push(format!("{sync}, {} threads: {error}", point.threads));
                }
            }
        }
    }
    Ok(found)
}

impl Options {
    fn check(&self) -> Result<(), Failure> {
        let question = Question {
            machine: &self.machine,
            locks: &[],
            threads: &self.workload.threads,
            cpus: self.cpus.as_slice(),
            duration: Some(self.duration),
        };
        question.check()?;
        self.workload.check(&contenders::simulated::names(&self.workload.structure))
    }

    fn job(&self, point: &Task, sync: &str, machine: &str) -> Job {
        let settings = Settings {
            threads: point.threads,
            // There are no locks, nor sections.
            mix: Mix::uniform(0, Length::fixed(0.0), Length::fixed(0.0), 0.0),
            pinning: self.pinning,
            warm_up: self.duration / 5,
            measured: self.duration,
            drain: Duration::ZERO,
            sample: 1,
            pace: Pace::of(1.0),
            seed: point.seed,
        };
        Job {
            machine: machine.to_owned(),
            cpus: self.cpus,
            lock: sync.to_owned(),
            settings,
            every_turn: false,
            // No thread waits for a CPU, so that there is no reason to sleep.
            patient: point.threads <= self.cpus(),
            task: Some(Task { sync: sync.to_owned(), ..point.clone() }),
        }
    }

    fn cpus(&self) -> u32 {
        self.cpus.unwrap_or(self.machine.machine().topology.cpus())
    }

    fn record(
        &self,
        point: &Task,
        sync: &str,
        findings: &[Finding],
        base: Option<&[Finding]>,
    ) -> Measurement {
        let mut record = record::of("set", Mechanism::Sync(sync.to_owned()), findings, 1.0);
        let renamed = std::mem::take(&mut record.metrics).into_iter();
        record.metrics = renamed
            .map(|(name, metric)| match name.strip_prefix("wait_") {
                Some(percentile) => (format!("latency_{percentile}"), metric),
                None => (name, metric),
            })
            .collect();
        record.machine.clone_from(&self.machine.name);
        describe(&mut record, point);
        record.parameters.insert("cpus".to_owned(), f64::from(self.cpus()).into());
        let nanoseconds = self.duration.as_nanos() as f64;
        record.parameters.insert("duration_ns".to_owned(), nanoseconds.into());
        if let Some(base) = base {
            let ratios = record::ratios(findings, base);
            record.metrics.extend(ratios.filter(|(name, _)| name == "ratio"));
        }
        record
    }
}

/// The largest range whose keys are all looked up at the end.
const LOOKED_UP: u64 = 20_000;

/// What the simulated program leaves.
type Left = Result<(Vec<Outcome>, BTreeMap<String, u64>, Window), String>;

/// Simulates one job in this process.
pub(super) fn simulate(
    job: &Job,
    task: &Task,
    machine: &Machine,
    simulation: &Simulation,
) -> Result<Finding, String> {
    let ghz = machine.core.ghz;
    let counts: Vec<Count> = (0..task.threads).map(|_| Count::default()).collect();
    let popular = task.popular();
    let threads: Vec<Cell<Option<(Operations, Outcome)>>> = (0..task.threads)
        .map(|index| Cell::new(Some((task.operations(index, &popular), Outcome::new()))))
        .collect();
    let keys = task.first_keys();
    let report = simulation.run(|| -> Left {
        if job.patient {
            tuning::set_spin_limit(u32::MAX);
        }
        let program = Program { job, task, ghz, counts: &counts, threads: &threads, keys: &keys };
        let unknown =
            || Err(format!("there is no {} by {} to simulate", task.structure, task.sync));
        contenders::simulated::make(task).map_or_else(unknown, |set| program.run(&*set))
    });
    let report = report.map_err(|failure| job::first_lines(&failure.to_string()))?;
    let (outcomes, statistics, window) = report.result.as_ref().map_err(Clone::clone)?;
    let mut waits = Waits::default();
    for outcome in outcomes {
        waits.add_ticks(&outcome.waits, 1.0 / ghz);
    }
    let slice = Slice {
        counts: counts.iter().map(Count::counted).collect(),
        elapsed_ns: (window.end - window.begin) as f64 / ghz,
        waits,
        stuck: 0,
    };
    let operations = outcomes.iter().map(|outcome| outcome.sections).sum::<u64>().max(1);
    let mut sight = job::sight(&report, operations);
    let each = |(name, count): (&String, &u64)| {
        (format!("count_{name}"), *count as f64 / operations as f64)
    };
    sight.extend(statistics.iter().map(each));
    Ok(Finding { slice, sight })
}

/// The simulated program, to be run by its first thread.
struct Program<'a> {
    job: &'a Job,
    task: &'a Task,
    ghz: f64,
    counts: &'a [Count],
    threads: &'a [Cell<Option<(Operations, Outcome)>>],
    keys: &'a [u64],
}

impl Program<'_> {
    fn run(&self, set: &dyn AnySet) -> Left {
        let mut handle = set.handle();
        for key in self.keys {
            handle.insert(*key);
            thread::progress();
        }
        drop(handle);
        let cycles = |time: Duration| (time.as_nanos() as f64 * self.ghz) as u64;
        let begin = thread::now() + cycles(self.job.settings.warm_up);
        let window = Window { begin, end: begin + cycles(self.job.settings.measured) };
        let told = Cell::new(self.task.initial as i64);
        let outcomes = thread::parallel(self.task.threads, |index| {
            let (operations, outcome) =
                self.threads[index as usize].take().expect("each thread runs once");
            let (outcome, added) = self.work(set, index, window, operations, outcome);
            told.set(told.get() + added);
            outcome
        });
        if self.task.range <= LOOKED_UP {
            let mut handle = set.handle();
            let is_there = |key: &u64| {
                thread::progress();
                handle.contains(key)
            };
            let found = (0..self.task.range).filter(is_there).count() as i64;
            if found != told.get() {
                return Err(format!("the set has {found} keys, and should have {}", told.get()));
            }
        }
        let mut statistics = BTreeMap::new();
        set.statistics(&mut |name, count| _ = statistics.insert(name.to_owned(), count));
        Ok((outcomes, statistics, window))
    }

    /// What one thread does; returns also how many keys it has added.
    fn work(
        &self,
        set: &dyn AnySet,
        index: u32,
        window: Window,
        mut operations: Operations,
        mut outcome: Outcome,
    ) -> (Outcome, i64) {
        let (mut handle, mut added) = (set.handle(), 0);
        let each = (OPERATION_NS * self.ghz).round() as u64;
        loop {
            let begin = thread::now();
            if begin >= window.end {
                return (outcome, added);
            }
            added += apply(&mut *handle, operations.draw());
            thread::compute(each);
            outcome.sections += 1;
            if begin >= window.begin {
                outcome.waits.saturating_record(thread::now() - begin);
            }
            self.counts[index as usize].note(window, outcome.sections);
        }
    }
}

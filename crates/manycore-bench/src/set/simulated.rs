//! `manycore sim set`: threads use a set on a simulated machine, by several mechanisms.
//!
//! What is done is what [`bench set`](crate::set) does. The first thread fills the set, and does
//! some operations alone, so that what adapts to what threads do has done so when they start; that
//! takes simulated time that is not counted. Beside the accesses to the set, an operation costs 5
//! ns unless told otherwise: an assumption, the same for all mechanisms.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use manycore_measure::{Measurement, Mechanism};
use manycore_sim::{Model, thread};
use manycore_traits::SetHandle;
use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::failure::Failure;
use crate::found::Found;
use crate::set::contenders::{self, AnySet};
use crate::set::{Operations, Task, TaskGrid, apply, describe};
use crate::simulated::{
    Beside, Count, Finding, Job, Program, Question, Run, SimulatedCampaign, SimulatedProgram,
    SimulatorPool, Window, sight,
};
use crate::simulated::{record, variant};
use crate::slice::{Outcome, Pinning};

/// What an operation takes beside its accesses. A guess, the same for all.
const BESIDE: Beside = Beside::each(5.0);

/// The largest set that is simulated: each key is put in by a simulated insertion.
const KEYS_MAX: u64 = 10_000_000;

/// Operations of the first thread before the others start: more than the some 2,000 after which
/// MV-RLU decides who waits for clocks.
const ALONE: u32 = 5_000;

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
    pub workload: TaskGrid,
    /// Simulated time that is counted.
    pub duration: Duration,
    /// Operations of each thread, whatever time they take; none if it is the duration that counts.
    pub operations: Option<u64>,
    /// Which CPUs the threads run on.
    pub pinning: Pinning,
    /// Whether to vary what nobody knows about the machine.
    pub sweep: bool,
    /// What an operation takes beside its accesses.
    pub beside: Beside,
    /// Who does it.
    pub pool: SimulatorPool,
}

impl Options {
    /// The usual workload, for a millisecond.
    pub fn new(machine: Model, pool: SimulatorPool) -> Self {
        Self {
            machine,
            cpus: None,
            workload: TaskGrid::default(),
            duration: DURATION,
            operations: None,
            pinning: Pinning::Auto,
            sweep: false,
            beside: BESIDE,
            pool,
        }
    }
}

/// Simulates.
pub fn run(options: &Options) -> Result<Found, Failure> {
    options.check()?;
    let campaign = SimulatedCampaign {
        points: &options.workload.points(),
        mechanisms: &options.workload.syncs,
        machines: &variant::of(&options.machine, options.sweep),
        pool: &options.pool,
    };
    let job = |point: &Task, sync: &str, machine: &str| options.job(point, sync, machine);
    let record = |point: &Task, sync: &str, findings: &[Finding], base: Option<&[Finding]>| {
        options.record(point, sync, findings, base)
    };
    Ok(campaign.run(job, record))
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
        self.workload.check(&contenders::simulated::names(&self.workload.structure))?;
        if self.operations == Some(0) {
            return Err(Failure::Usage("no operations: give at least 1".to_owned()));
        }
        match self.workload.keys.initial {
            0..=KEYS_MAX => Ok(()),
            many => Err(Failure::Usage(format!(
                "{many} keys take too long to put in: simulate at most {KEYS_MAX}"
            ))),
        }
    }

    fn job(&self, point: &Task, sync: &str, machine: &str) -> Job {
        Job {
            machine: machine.to_owned(),
            cpus: self.cpus,
            mechanism: sync.to_owned(),
            threads: point.threads,
            program: Program::of(&Load {
                task: Task { sync: sync.to_owned(), ..point.clone() },
                beside: self.beside,
                operations: self.operations,
            }),
            measured: self.duration,
            pinning: self.pinning,
            seed: point.keys.seed,
            every_turn: false,
            // No thread waits for a CPU, so that there is no reason to sleep.
            patient: point.threads <= self.cpus(),
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
        let (bound, value) = match self.operations {
            Some(count) => ("operations", count as f64),
            None => ("duration_ns", self.duration.as_nanos() as f64),
        };
        record.parameters.insert(bound.to_owned(), value.into());
        if let Some(base) = base {
            let ratios = record::ratios(findings, base);
            record.metrics.extend(ratios.filter(|(name, _)| name == "ratio"));
        }
        record
    }
}

/// What simulated threads do, and until when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Load {
    /// The set and its operations.
    pub task: Task,
    /// What an operation takes beside its accesses.
    pub beside: Beside,
    /// Operations of each thread; none if it is time that bounds them.
    pub operations: Option<u64>,
}

/// The largest range whose keys are all looked up at the end.
const LOOKED_UP: u64 = 20_000;

impl SimulatedProgram for Load {
    const NAME: &'static str = "Set";

    fn simulate(&self, run: &Run) -> Result<Finding, String> {
        simulate(run, self)
    }
}

fn simulate(run: &Run, load: &Load) -> Result<Finding, String> {
    let task = &load.task;
    let counts: Vec<Count> = (0..task.threads).map(|_| Count::default()).collect();
    let ranks = task.keys.ranks();
    let threads: Vec<Cell<Option<(Operations, Outcome)>>> = (0..task.threads)
        .map(|index| Cell::new(Some((task.operations(index, &ranks), Outcome::new()))))
        .collect();
    let keys = task.keys.first();
    let alone = Cell::new(Some(task.operations(u32::MAX, &ranks)));
    let report = run.simulate(|| {
        let empty = thread::heap_bytes();
        let unknown = || format!("there is no {} by {} to simulate", task.structure, task.sync);
        let set = contenders::simulated::make(task).ok_or_else(unknown)?;
        let (counts, threads, keys, alone) = (&counts, &threads, &keys, &alone);
        Work { run, load, empty, counts, threads, keys, alone }.on(&*set)
    })?;
    let left = report.result.as_ref().map_err(Clone::clone)?;
    let counted = counts.iter().map(Count::counted).collect();
    let slice = run.slice(left.window, counted, left.outcomes.iter().map(|outcome| &outcome.waits));
    let operations = left.outcomes.iter().map(|outcome| outcome.sections).sum::<u64>().max(1);
    let mut sight = sight(&report, operations);
    sight.insert("bytes_per_key".to_owned(), left.filled as f64 / keys.len().max(1) as f64);
    sight.insert("garbage".to_owned(), left.garbage as f64);
    let each = |(name, count): (&String, &f64)| (format!("count_{name}"), *count);
    sight.extend(left.statistics.iter().map(each));
    Ok(Finding { slice, sight })
}

/// What the simulated program leaves.
#[derive(Clone)]
struct Left {
    outcomes: Vec<Outcome>,
    statistics: BTreeMap<String, f64>,
    window: Window,
    /// Bytes of the filled set.
    filled: usize,
    /// Bytes beyond those, when threads ended.
    garbage: usize,
}

/// The simulated program.
struct Work<'a> {
    run: &'a Run<'a>,
    load: &'a Load,
    /// Bytes that the program had allocated without the set.
    empty: usize,
    counts: &'a [Count],
    threads: &'a [Cell<Option<(Operations, Outcome)>>],
    keys: &'a [u64],
    alone: &'a Cell<Option<Operations>>,
}

impl Work<'_> {
    /// To be called by the first thread.
    fn on(&self, set: &dyn AnySet) -> Result<Left, String> {
        let task = &self.load.task;
        let mut handle = set.handle();
        for key in self.keys {
            handle.insert(*key);
            thread::progress();
        }
        let full = thread::heap_bytes();
        let mut alone = self.alone.take().expect("the set is filled once");
        let operate = |_| {
            thread::progress();
            apply(&mut *handle, alone.draw())
        };
        let added: i64 = (0..ALONE).map(operate).sum();
        drop(handle);
        let kept = thread::heap_bytes();
        let counts = Counts::read(|visit| set.statistics(visit));
        let own = thread::heap_bytes() - kept;
        let begin = thread::now();
        let mut window = match self.load.operations {
            Some(_) => Window::endless(begin),
            None => self.run.window(begin),
        };
        let told = Cell::new(task.keys.initial as i64 + added);
        let (memory, ended) = (Cell::new(full + own), Cell::new(begin));
        let outcomes = thread::parallel(task.threads, |index| {
            let (operations, outcome) =
                self.threads[index as usize].take().expect("each thread runs once");
            let mut handle = set.handle();
            let (outcome, added) = self.thread(&mut *handle, index, window, operations, outcome);
            told.set(told.get() + added);
            // While it still has its handle; the first who ended saw those of all.
            memory.set(memory.get().max(thread::heap_bytes()));
            ended.set(ended.get().max(thread::now()));
            outcome
        });
        window.end = window.end.min(ended.get());
        if task.keys.range <= LOOKED_UP {
            let mut handle = set.handle();
            let is_there = |key: &u64| {
                thread::progress();
                handle.contains(key)
            };
            let found = (0..task.keys.range).filter(is_there).count() as i64;
            if found != told.get() {
                return Err(format!("the set has {found} keys, and should have {}", told.get()));
            }
        }
        let done = outcomes.iter().map(|outcome| outcome.sections).sum();
        let statistics = Counts::read(|visit| set.statistics(visit)).since(&counts, done);
        let (filled, garbage) = (full.saturating_sub(self.empty), memory.get() - (full + own));
        Ok(Left { outcomes, statistics, window, filled, garbage })
    }

    /// What one thread does; returns also how many keys it has added.
    fn thread(
        &self,
        handle: &mut dyn SetHandle<u64>,
        index: u32,
        window: Window,
        mut operations: Operations,
        mut outcome: Outcome,
    ) -> (Outcome, i64) {
        let cycles = |updates| (self.load.beside.ns(updates) * self.run.ghz()).round() as u64;
        let (read, update) = (cycles(false), cycles(true));
        let limit = self.load.operations.unwrap_or(u64::MAX);
        let mut added = 0;
        loop {
            let begin = thread::now();
            if begin >= window.end || outcome.sections == limit {
                return (outcome, added);
            }
            let operation = operations.draw();
            added += apply(handle, operation);
            thread::compute(if operation.updates() { update } else { read });
            outcome.sections += 1;
            if begin >= window.begin {
                outcome.waits.saturating_record(thread::now() - begin);
            }
            self.counts[index as usize].note(window, outcome.sections);
        }
    }
}

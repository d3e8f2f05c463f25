//! `manycore sim index`: threads use an index on a simulated machine, by several mechanisms.
//!
//! What is done is what [`bench index`](crate::index) does. Beside its accesses to the index, an
//! operation costs 5 ns unless told otherwise, and each entry of a scan 1 ns: assumptions, the same
//! for all mechanisms.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use manycore_measure::{Measurement, Metric};
use manycore_sim::{Model, thread};
use serde::{Deserialize, Serialize};

use super::any_index::{Abilities, AnyIndex, find};
use super::grid::TaskGrid;
use super::operations::{Actor, Inserted, Operations, Tally};
use super::own::simulated::CONTENDERS;
use super::result::describe;
use super::task::{Task, key_of};
use super::verify::{Verdict, verify};
use crate::failure::Failure;
use crate::found::Found;
use crate::simulated::{
    Beside, Finding, Job, Program, Question, Run, SimulatedCampaign, SimulatedProgram,
    SimulatorPool, variant,
};
use crate::slice::Pinning;
use crate::structure::{self, Simulated, SimulatedActor, SimulatedUse};

/// What an operation takes beside its accesses. A guess, the same for all.
const BESIDE: Beside = Beside::each(5.0);

/// What an entry of a scan takes beside its accesses, in nanoseconds. A guess, the same for all.
const ENTRY_NS: f64 = 1.0;

/// The largest index that is simulated: each record is put in by a simulated insertion.
const RECORDS_MAX: u64 = 10_000_000;

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
            duration: Duration::from_millis(1),
            operations: None,
            pinning: Pinning::Auto,
            sweep: false,
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
        self.workload.check(CONTENDERS)?;
        if self.operations == Some(0) {
            return Err(Failure::Usage("no operations: give at least 1".to_owned()));
        }
        match self.workload.records.initial {
            0..=RECORDS_MAX => Ok(()),
            many => Err(Failure::Usage(format!(
                "{many} records take too long to put in: simulate at most {RECORDS_MAX}"
            ))),
        }
    }

    fn job(&self, point: &Task, sync: &str, machine: &str) -> Job {
        let task = Task { sync: sync.to_owned(), ..point.clone() };
        Job {
            machine: machine.to_owned(),
            cpus: self.cpus,
            mechanism: sync.to_owned(),
            threads: point.threads,
            program: Program::of(&Load { task, operations: self.operations }),
            measured: self.duration,
            pinning: self.pinning,
            seed: point.records.seed,
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
        let mut record = structure::simulated("index", sync, findings, base);
        record.machine.clone_from(&self.machine.name);
        let contender = find(CONTENDERS, &point.structure, sync);
        describe(&mut record, point, contender);
        record.parameters.insert("cpus".to_owned(), f64::from(self.cpus()).into());
        let (bound, value) = match self.operations {
            Some(count) => ("operations", count as f64),
            None => ("duration_ns", self.duration.as_nanos() as f64),
        };
        record.parameters.insert(bound.to_owned(), value.into());
        if let Some(each) = record.metrics.remove(SCANNED) {
            record.metrics.insert("entries".to_owned(), times(&each, &record));
        }
        record
    }
}

/// What the simulated program has seen of scans: entries for each operation.
const SCANNED: &str = "scanned";

/// Entries a second, of this many an operation: exact for the model as it is; the ends of a
/// sweep may be of different variants.
fn times(each: &Metric, record: &Measurement) -> Metric {
    let end = |each: Option<f64>, operations: Option<f64>| Some(each? * operations?);
    Metric {
        value: each.value * record.value,
        unit: "entry/s".to_owned(),
        low: end(each.low, record.low),
        high: end(each.high, record.high),
    }
}

/// What simulated threads do, and until when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Load {
    /// The index and its operations.
    pub task: Task,
    /// Operations of each thread; none if it is time that bounds them.
    pub operations: Option<u64>,
}

impl SimulatedProgram for Load {
    const NAME: &'static str = "Index";

    fn simulate(&self, run: &Run) -> Result<Finding, String> {
        let task = &self.task;
        let initial = task.records.initial;
        let (ranks, numbers) = (task.records.ranks(), task.records.first());
        let inserted = Arc::new(Inserted::new(initial, initial, task.threads));
        let how = Simulated { threads: task.threads, operations: self.operations, keys: initial };
        let operations = |thread| Operations::new(task, thread, &ranks, &inserted);
        structure::simulate(run, how, operations, || {
            let unknown = || format!("there is no {} by {} to simulate", task.structure, task.sync);
            let contender = find(CONTENDERS, &task.structure, &task.sync).ok_or_else(unknown)?;
            let index = (contender.make)(task);
            let (numbers, inserted) = (&numbers[..], &inserted);
            Ok(Use { index, abilities: contender.abilities, task, numbers, inserted })
        })
    }
}

/// An index that simulated threads use.
struct Use<'a> {
    index: Box<dyn AnyIndex>,
    abilities: Abilities,
    task: &'a Task,
    numbers: &'a [u64],
    inserted: &'a Arc<Inserted>,
}

impl SimulatedUse for Use<'_> {
    type Operations = Operations;
    type Tally = Tally;
    type Actor<'a>
        = SimulatedThread<'a>
    where
        Self: 'a;

    fn actor(&self, thread: u32, operations: Operations) -> SimulatedThread<'_> {
        let actor = Actor::new(self.index.handle(), thread, self.inserted);
        SimulatedThread { actor, operations, numbers: self.numbers }
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.index.statistics(visit);
    }

    fn verify(&self, tallies: &[Tally], operations: u64) -> Result<BTreeMap<String, f64>, String> {
        let Self { index, abilities, task, inserted, .. } = self;
        let tally = Tally::sum(tallies.iter().copied());
        let Verdict { lost } =
            verify(&**index, *abilities, task, inserted, &tally, thread::progress)?;
        let each = |count: u64| count as f64 / operations.max(1) as f64;
        let scanned = task.mix.scans().then(|| (SCANNED.to_owned(), each(tally.scanned)));
        let lost = lost.map(|lost| ("count_lost_updates".to_owned(), each(lost)));
        Ok(scanned.into_iter().chain(lost).collect())
    }
}

/// A simulated thread.
struct SimulatedThread<'a> {
    actor: Actor<'a>,
    operations: Operations,
    numbers: &'a [u64],
}

impl SimulatedActor<Tally> for SimulatedThread<'_> {
    fn fill(&mut self) {
        for number in self.numbers {
            self.actor.handle.put(key_of(*number), 0);
            thread::progress();
        }
    }

    fn act(&mut self) -> f64 {
        let operation = self.operations.draw();
        let before = self.actor.tally.scanned;
        self.actor.act(operation);
        let entries = self.actor.tally.scanned - before;
        BESIDE.ns(operation.updates()) + entries as f64 * ENTRY_NS
    }

    fn tally(&self) -> Tally {
        self.actor.tally
    }
}

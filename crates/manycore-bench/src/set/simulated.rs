//! `manycore sim set`: threads use a set on a simulated machine, by several mechanisms.
//!
//! What is done is what [`bench set`](crate::set) does. The first thread fills the set, and does
//! some operations alone, so that what adapts to what threads do has done so when they start; that
//! takes simulated time that is not counted. Beside the accesses to the set, an operation costs 5
//! ns unless told otherwise: an assumption, the same for all mechanisms.

use std::collections::BTreeMap;
use std::time::Duration;

use manycore_measure::Measurement;
use manycore_sim::{Model, thread};
use manycore_traits::SetHandle;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::found::Found;
use crate::set::contenders::{self, AnySet};
use crate::set::{Operations, Task, TaskGrid, apply, describe};
use crate::simulated::{
    Beside, Finding, Job, Program, Question, Run, SimulatedCampaign, SimulatedProgram,
    SimulatorPool, variant,
};
use crate::slice::Pinning;
use crate::structure::{self, Simulated, SimulatedActor, SimulatedUse};

/// What an operation takes beside its accesses. A guess, the same for all.
const BESIDE: Beside = Beside::each(5.0);

/// The largest set that is simulated: each key is put in by a simulated insertion.
const KEYS_MAX: u64 = 10_000_000;

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
        let mut record = structure::simulated("set", sync, findings, base);
        record.machine.clone_from(&self.machine.name);
        describe(&mut record, point);
        record.parameters.insert("cpus".to_owned(), f64::from(self.cpus()).into());
        let (bound, value) = match self.operations {
            Some(count) => ("operations", count as f64),
            None => ("duration_ns", self.duration.as_nanos() as f64),
        };
        record.parameters.insert(bound.to_owned(), value.into());
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
    let (ranks, keys) = (task.keys.ranks(), task.keys.first());
    let how =
        Simulated { threads: task.threads, operations: load.operations, keys: keys.len() as u64 };
    let operations = |thread| task.operations(thread, &ranks);
    structure::simulate(run, how, operations, || {
        let unknown = || format!("there is no {} by {} to simulate", task.structure, task.sync);
        let set = contenders::simulated::make(task).ok_or_else(unknown)?;
        Ok(Use { set, load, keys: &keys })
    })
}

/// A set that simulated threads use.
struct Use<'a> {
    set: Box<dyn AnySet>,
    load: &'a Load,
    keys: &'a [u64],
}

impl SimulatedUse for Use<'_> {
    type Operations = Operations;
    /// Keys that the thread has added.
    type Tally = i64;
    type Actor<'a>
        = Actor<'a>
    where
        Self: 'a;

    fn actor(&self, _: u32, operations: Operations) -> Actor<'_> {
        let Self { set, load, keys } = self;
        Actor { handle: set.handle(), operations, keys, beside: load.beside, added: 0 }
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.set.statistics(visit);
    }

    fn verify(&self, tallies: &[i64], _: u64) -> Result<BTreeMap<String, f64>, String> {
        let keys = &self.load.task.keys;
        if keys.range <= LOOKED_UP {
            let mut handle = self.set.handle();
            let is_there = |key: &u64| {
                thread::progress();
                handle.contains(key)
            };
            let found = (0..keys.range).filter(is_there).count() as i64;
            let told = keys.initial as i64 + tallies.iter().sum::<i64>();
            if found != told {
                return Err(format!("the set has {found} keys, and should have {told}"));
            }
        }
        Ok(BTreeMap::new())
    }
}

/// A simulated thread.
struct Actor<'a> {
    handle: Box<dyn SetHandle<u64> + 'a>,
    operations: Operations,
    keys: &'a [u64],
    beside: Beside,
    added: i64,
}

impl SimulatedActor<i64> for Actor<'_> {
    fn fill(&mut self) {
        for key in self.keys {
            self.handle.insert(*key);
            thread::progress();
        }
    }

    fn act(&mut self) -> f64 {
        let operation = self.operations.draw();
        self.added += apply(&mut *self.handle, operation);
        self.beside.ns(operation.updates())
    }

    fn tally(&self) -> i64 {
        self.added
    }
}

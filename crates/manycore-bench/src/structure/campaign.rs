//! Mechanisms at the points of a grid, on a simulated machine.

use std::time::Duration;

use manycore_measure::Measurement;
use manycore_sim::Model;

use crate::failure::Failure;
use crate::run_records::RunRecords;
use crate::simulated::{
    Beside, Finding, Job, Program, Question, SimulatedCampaign, SimulatorPool, variant,
};
use crate::slice::Pinning;

use super::{GridPoint, Load, records};

/// The time of an operation apart from its accesses. A guess, the same for all.
const BESIDE: Beside = Beside::each(5.0);

/// The largest number of inserted elements; each takes a simulated insertion.
const INITIAL_MAX: u64 = 10_000_000;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct SimulatedOptions<G> {
    /// The machine.
    pub machine: Model,
    /// The number of its CPUs that the threads may use; `None` means all.
    pub cpus: Option<u32>,
    /// What threads do.
    pub workload: G,
    /// Simulated time that is counted.
    pub duration: Duration,
    /// The number of operations of each thread, whatever time they take; `None` if the duration
    /// counts.
    pub operations: Option<u64>,
    /// Which CPUs the threads run on.
    pub pinning: Pinning,
    /// Whether to vary the unknown properties of the machine.
    pub sweep: bool,
    /// What an operation takes apart from its accesses.
    pub beside: Beside,
    /// The processes that simulate.
    pub pool: SimulatorPool,
}

impl<G: Default> SimulatedOptions<G> {
    /// The usual workload, for a millisecond.
    pub fn new(machine: Model, pool: SimulatorPool) -> Self {
        Self {
            machine,
            cpus: None,
            workload: G::default(),
            duration: Duration::from_millis(1),
            operations: None,
            pinning: Pinning::Auto,
            sweep: false,
            beside: BESIDE,
            pool,
        }
    }
}

/// The operations of threads on a structure: mechanisms, and the points at which each is simulated.
pub(crate) trait Grid {
    /// A point, with a mechanism.
    type Task: GridPoint;

    /// What a structure holds, in the plural.
    const ELEMENTS: &'static str;

    /// Whether it makes sense on a simulated machine.
    fn check_simulated(&self) -> Result<(), Failure>;

    /// The points.
    fn tasks(&self) -> Vec<Self::Task>;

    /// Names of mechanisms; the first is the base line.
    fn syncs(&self) -> &[String];

    /// Thread counts.
    fn threads(&self) -> &[u32];

    /// How many elements there are at the start.
    fn initial(&self) -> u64;

    /// What everything is drawn by.
    fn seed(&self) -> u64;

    /// Adds a mechanism's own data about its point to its record.
    fn describe(record: &mut Measurement, task: &Self::Task, sync: &str);
}

/// Simulates.
pub(crate) fn run<G: Grid>(options: &SimulatedOptions<G>) -> Result<RunRecords, Failure> {
    let asked = Asked(options);
    asked.check()?;
    let campaign = SimulatedCampaign {
        points: &options.workload.tasks(),
        mechanisms: options.workload.syncs(),
        machines: &variant::of(&options.machine, options.sweep),
        pool: &options.pool,
    };
    let job = |task: &G::Task, sync: &str, machine: &str| asked.job(task, sync, machine);
    let record = |task: &G::Task, sync: &str, findings: &[Finding], base: Option<&[Finding]>| {
        asked.record(task, sync, findings, base)
    };
    Ok(campaign.run(job, record))
}

/// What is asked for.
struct Asked<'a, G>(&'a SimulatedOptions<G>);

impl<G: Grid> Asked<'_, G> {
    fn check(&self) -> Result<(), Failure> {
        let SimulatedOptions { machine, cpus, workload, duration, operations, .. } = self.0;
        let question = Question {
            machine,
            locks: &[],
            threads: workload.threads(),
            cpus: cpus.as_slice(),
            duration: Some(*duration),
        };
        question.check()?;
        workload.check_simulated()?;
        if *operations == Some(0) {
            return Err(Failure::Usage("no operations: give at least 1".to_owned()));
        }
        match workload.initial() {
            0..=INITIAL_MAX => Ok(()),
            many => Err(Failure::Usage(format!(
                "{many} {} take too long to put in: simulate at most {INITIAL_MAX}",
                G::ELEMENTS
            ))),
        }
    }

    fn job(&self, task: &G::Task, sync: &str, machine: &str) -> Job {
        let options = self.0;
        let threads = task.threads();
        let SimulatedOptions { beside, operations, .. } = *options;
        Job {
            machine: machine.to_owned(),
            cpus: options.cpus,
            mechanism: sync.to_owned(),
            threads,
            program: Program::of(&Load { task: task.in_round(sync, 0), beside, operations }),
            measured: options.duration,
            pinning: options.pinning,
            seed: options.workload.seed(),
            every_turn: false,
            // No thread waits for a CPU, so that there is no reason to sleep.
            patient: threads <= self.cpus(),
        }
    }

    fn cpus(&self) -> u32 {
        self.0.cpus.unwrap_or(self.0.machine.machine().topology.cpus())
    }

    fn record(
        &self,
        task: &G::Task,
        sync: &str,
        findings: &[Finding],
        base: Option<&[Finding]>,
    ) -> Measurement {
        let SimulatedOptions { machine, operations, duration, .. } = self.0;
        let mut record = records::simulated(G::Task::WORKLOAD, sync, findings, base);
        record.machine.clone_from(&machine.name);
        G::describe(&mut record, task, sync);
        record.parameters.insert("cpus".to_owned(), f64::from(self.cpus()).into());
        let (bound, value) = match operations {
            Some(count) => ("operations", *count as f64),
            None => ("duration_ns", duration.as_nanos() as f64),
        };
        record.parameters.insert(bound.to_owned(), value.into());
        record
    }
}

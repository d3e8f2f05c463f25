//! `manycore sim lock`: threads contend for locks on a simulated machine, at every point of a small
//! grid.

use std::time::Duration;

use manycore_measure::{Measurement, Mechanism, Parameter};
use manycore_sim::Model;

use crate::contender;
use crate::failure::Failure;
use crate::lock::{Point, PointGrid, SIMULATED_BASE};
use crate::mix::USUAL_DATA;
use crate::run_records::RunRecords;
use crate::simulated::{
    Finding, Job, Program, Question, SimulatedCampaign, SimulatorPool, record, variant,
};
use crate::slice::Pinning;
use crate::work::Length;

/// The usual time that is simulated.
const DURATION: Duration = Duration::from_millis(10);

/// With more threads than CPUs, the usual time is this many time slices.
const SLICES: f64 = 50.0;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine.
    pub machine: Model,
    /// The number of its CPUs that the threads may use; `None` means all.
    pub cpus: Option<u32>,
    /// Names of locks; empty means all locks. The base line takes part in any case.
    pub locks: Vec<String>,
    /// Thread counts.
    pub threads: Vec<u32>,
    /// How many locks the threads share.
    pub lock_count: u32,
    /// Times in a section.
    pub sections: Vec<Length>,
    /// Time between two sections; `None` means exponential with twice the mean of the section.
    pub outside: Option<Length>,
    /// The share of sections that only read, in percent.
    pub reads: f64,
    /// Cache lines that a section reads and writes, one after the other.
    pub data: u32,
    /// Simulated time that is counted; `None` means 10 ms, or 50 time slices with more threads than
    /// CPUs.
    pub duration: Option<Duration>,
    /// Which CPUs the threads run on.
    pub pinning: Pinning,
    /// The seed of every random choice.
    pub seed: u64,
    /// Whether to vary the unknown properties of the machine.
    pub sweep: bool,
    /// Whether to simulate each iteration of a polling loop, and park no thread.
    pub every_turn: bool,
    /// The processes that simulate.
    pub pool: SimulatorPool,
}

impl Options {
    /// All locks, with 1, 2, 4 and 8 threads, one lock, sections of 1 us.
    pub fn new(machine: Model, pool: SimulatorPool) -> Self {
        Self {
            machine,
            cpus: None,
            locks: Vec::new(),
            threads: vec![1, 2, 4, 8],
            lock_count: 1,
            sections: vec![Length::fixed(1_000.0)],
            outside: None,
            reads: 0.0,
            data: USUAL_DATA,
            duration: None,
            pinning: Pinning::Auto,
            seed: 1,
            sweep: false,
            every_turn: false,
            pool,
        }
    }
}

/// Simulates.
pub fn run(options: &Options) -> Result<RunRecords, Failure> {
    options.check()?;
    let campaign = SimulatedCampaign {
        points: &options.grid().points(),
        mechanisms: &options.subjects(),
        machines: &variant::of(&options.machine, options.sweep),
        pool: &options.pool,
    };
    let job = |point: &Point, lock: &str, machine: &str| options.job(point, lock, machine);
    let record = |point: &Point, lock: &str, findings: &[Finding], base: Option<&[Finding]>| {
        options.record(point, lock, findings, base)
    };
    Ok(campaign.run(job, record))
}

impl Options {
    fn grid(&self) -> PointGrid<'_> {
        PointGrid {
            threads: &self.threads,
            lock_count: self.lock_count,
            sections: &self.sections,
            outside: self.outside,
            reads: self.reads,
            data: self.data,
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let question = Question {
            machine: &self.machine,
            locks: &self.locks,
            threads: &self.threads,
            cpus: self.cpus.as_slice(),
            duration: self.duration,
        };
        question.check()?;
        self.grid().check()
    }

    /// The base line first, then the others in the order of the request.
    fn subjects(&self) -> Vec<String> {
        let every = || contender::simulated::names(self.reads > 0.0).map(str::to_owned).collect();
        let asked = if self.locks.is_empty() { every() } else { self.locks.clone() };
        let mut subjects = vec![SIMULATED_BASE.to_owned()];
        for lock in asked {
            if !subjects.contains(&lock) {
                subjects.push(lock);
            }
        }
        subjects
    }

    pub(crate) fn job(&self, point: &Point, lock: &str, machine: &str) -> Job {
        Job {
            machine: machine.to_owned(),
            cpus: self.cpus,
            mechanism: lock.to_owned(),
            threads: point.threads,
            program: Program::of(&point.mix()),
            measured: self.measured(point),
            pinning: self.pinning,
            seed: self.seed,
            every_turn: self.every_turn,
            // No thread waits for a CPU, so that there is no reason to sleep.
            patient: point.threads <= self.cpus(),
        }
    }

    fn measured(&self, point: &Point) -> Duration {
        let machine = self.machine.machine();
        let slices = SLICES * machine.os.time_slice as f64 / machine.core.ghz;
        let usual = match point.threads > self.cpus() {
            true => DURATION.max(Duration::from_nanos(slices as u64)),
            false => DURATION,
        };
        self.duration.unwrap_or(usual)
    }

    fn cpus(&self) -> u32 {
        self.cpus.unwrap_or(self.machine.machine().topology.cpus())
    }

    /// The record of a lock at a point; the first finding is that of the unchanged model.
    pub(crate) fn record(
        &self,
        point: &Point,
        lock: &str,
        findings: &[Finding],
        base: Option<&[Finding]>,
    ) -> Measurement {
        let lock = Mechanism::Lock(lock.to_owned());
        let mut record = record::of("lock", lock, findings, 1.0);
        record.threads = point.threads;
        record.update = Some(100.0 - point.reads);
        record.machine.clone_from(&self.machine.name);
        record.seed = Some(self.seed);
        record.parameters.extend(point.parameters());
        let mut parameter = |name: &str, value: Parameter| {
            record.parameters.insert(name.to_owned(), value);
        };
        parameter("cpus", f64::from(self.cpus()).into());
        parameter("duration_ns", (self.measured(point).as_nanos() as f64).into());
        if self.every_turn {
            parameter("polling", "every turn".into());
        }
        if let Some(base) = base {
            record.metrics.extend(record::ratios(findings, base));
        }
        record
    }
}

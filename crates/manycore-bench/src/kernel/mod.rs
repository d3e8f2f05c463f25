//! `manycore sim kernel`: the situation of "An Analysis of Lock Contention in Linux Memory
//! Management for Many-core System" (J. Kyong, S.-S. Lim). An application's threads compute and
//! call the kernel, which takes several named locks; waits are counted lock by lock.
//!
//! Two applications: AIM7, whose processes make processes, and SPECjbb2013, threads of one process.
//! The calls' work determines how often each call takes each lock; a table has every number and its
//! source. One number is fitted for each application: the computation between two operations, which
//! decides with how many cores the first lock is a bottleneck.
//!
//! | module | what is in it |
//! |---|---|
//! | `numbers` | every other number that the model needs |
//! | `locks` | the kernel's locks, by ours, with a count of waiters |
//! | `processes`, `threads` | what the applications share, and the calls |
//! | `run_queues` | the scheduler's locks |
//! | `program` | the threads |
//! | `render` | the results for a person |

mod command;
mod locks;
mod numbers;
mod processes;
mod program;
mod render;
mod run_queues;
mod threads;

use std::time::Duration;

use manycore_measure::{Measurement, Mechanism, Metric};
use manycore_sim::Model;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::front::Front;
use crate::run_records::RunRecords;
use crate::simulated::{
    Finding, Job, Program, Question, Simulator, SimulatorPool, record, variant,
};
use crate::slice::Pinning;
use crate::workload::Workload;
pub use numbers::{Number, Numbers, Origin, table};
pub use render::render;

/// What runs on the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Application {
    /// AIM7 multiuser: processes that make processes.
    Processes,
    /// SPECjbb2013: threads of one process.
    Threads,
}

/// Jobs of users that always have one.
pub const JOBS: &str = "jobs";
/// Requests, as many as are served.
pub const MAX: &str = "max-jops";
/// The rate of requests at the highest load at which nearly all are served in time.
pub const CRITICAL: &str = "critical-jops";

/// The loads among which the largest one that can be served is searched, in cores' worth of work.
const LADDER: [u32; 14] = [5, 10, 15, 20, 25, 30, 35, 40, 50, 60, 75, 90, 105, 120];

impl Application {
    /// The names of the application's rates per second.
    pub fn series(self) -> &'static [&'static str] {
        match self {
            Self::Processes => &[JOBS],
            Self::Threads => &[MAX, CRITICAL],
        }
    }

    /// The mean computation between two operations: fitted.
    pub fn compute(self) -> Duration {
        match self {
            Self::Processes => Duration::from_micros(700),
            Self::Threads => Duration::from_micros(200),
        }
    }
}

/// What threads do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Load {
    pub application: Application,
    /// The mean computation between two operations, in nanoseconds.
    pub compute_ns: f64,
    pub numbers: Numbers,
    /// The rate of requests, in cores' worth of work. If no rate is given, each thread always has a
    /// request.
    pub offered: Option<f64>,
}

impl Load {
    /// What an operation takes without waits.
    fn own_ns(&self) -> f64 {
        self.compute_ns + threads::Space::own_ns(&self.numbers)
    }
}

/// Applications whose calls take several locks of the kernel.
pub(crate) struct KernelModel;

impl Workload for KernelModel {
    fn simulated(&self) -> Vec<Front> {
        vec![Front::of::<command::Options>()]
    }

    fn simulators(&self) -> Vec<Simulator> {
        vec![Simulator::of::<Load>()]
    }
}

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine.
    pub machine: Model,
    /// What runs.
    pub application: Application,
    /// Numbers of threads, each with a CPU.
    pub threads: Vec<u32>,
    /// The mean computation between two operations.
    pub compute: Duration,
    /// What else the model needs.
    pub numbers: Numbers,
    /// Simulated time that is counted.
    pub duration: Duration,
    /// The seed of every random choice.
    pub seed: u64,
    /// Whether to vary the unknown properties of the machine.
    pub sweep: bool,
    /// The processes that simulate.
    pub pool: SimulatorPool,
}

impl Options {
    /// 1 to 120 threads, 20 ms.
    pub fn new(machine: Model, application: Application, pool: SimulatorPool) -> Self {
        Self {
            machine,
            application,
            threads: vec![1, 15, 30, 45, 60, 75, 90, 105, 120],
            compute: application.compute(),
            numbers: Numbers::of(application),
            duration: Duration::from_millis(20),
            seed: 1,
            sweep: false,
            pool,
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let question = Question {
            machine: &self.machine,
            locks: &[],
            threads: &self.threads,
            cpus: &self.threads,
            duration: Some(self.duration),
        };
        question.check()?;
        if self.compute > Duration::from_secs(1) {
            let fault = "the computation between two operations is over a second";
            return Err(Failure::Usage(fault.into()));
        }
        Ok(())
    }

    fn load(&self, offered: Option<u32>) -> Load {
        Load {
            application: self.application,
            compute_ns: self.compute.as_nanos() as f64,
            numbers: self.numbers.clone(),
            offered: offered.map(f64::from),
        }
    }

    /// First the maximum load, and then the offered rates, step by step.
    fn loads(&self, threads: u32) -> Vec<Option<u32>> {
        let steps = LADDER.iter().filter(|step| **step <= threads).map(|step| Some(*step));
        let steps = steps.filter(|_| self.application == Application::Threads);
        std::iter::once(None).chain(steps).collect()
    }

    fn job(&self, threads: u32, offered: Option<u32>, machine: &str) -> Job {
        Job {
            machine: machine.to_owned(),
            cpus: None,
            mechanism: self.application.series()[0].to_owned(),
            threads,
            program: Program::of(&self.load(offered)),
            measured: self.duration,
            pinning: Pinning::Each,
            seed: self.seed,
            every_turn: false,
            // A kernel's semaphore does not wait for long without sleeping.
            patient: false,
        }
    }
}

/// Simulates.
pub fn run(options: &Options) -> Result<RunRecords, Failure> {
    options.check()?;
    let machines = variant::of(&options.machine, options.sweep);
    let jobs = options.threads.iter().flat_map(|threads| {
        let of_load = |offered| machines.iter().map(move |m| (*threads, offered, m));
        options.loads(*threads).into_iter().flat_map(of_load).collect::<Vec<_>>()
    });
    let jobs: Vec<Job> =
        jobs.map(|(count, load, machine)| options.job(count, load, machine)).collect();
    let mut answers = options.pool.run(&jobs).into_iter();
    let mut found = RunRecords { measurements: Vec::new(), failures: Vec::new() };
    for threads in &options.threads {
        let loads = options.loads(*threads);
        let all: Vec<_> = answers.by_ref().take(loads.len() * machines.len()).collect();
        match all.into_iter().collect::<Result<Vec<Finding>, _>>() {
            Ok(findings) => {
                let (most, offered) = findings.split_at(machines.len());
                found.measurements.push(options.describe(options.most(most), *threads));
                if !offered.is_empty() {
                    let record = options.critical(offered, machines.len());
                    found.measurements.push(options.describe(record, *threads));
                }
            }
            Err(error) => found.failures.push(format!("{threads} threads: {error}")),
        }
    }
    Ok(found)
}

impl Options {
    fn most(&self, findings: &[Finding]) -> Measurement {
        let series = Mechanism::Sync(self.application.series()[0].to_owned());
        let mut record = record::of("kernel", series, findings, 1.0);
        record.metrics = std::mem::take(&mut record.metrics)
            .into_iter()
            .map(|(name, metric)| match name.strip_prefix("wait_") {
                Some(rest) => (format!("latency_{rest}"), metric),
                None => (name, metric),
            })
            .collect();
        record
    }

    /// The rate `critical-jops`. Requests are offered in ascending steps, each step on all variants
    /// of the machine; the rate is the throughput at the last step up to which requests were in
    /// time.
    fn critical(&self, findings: &[Finding], machines: usize) -> Measurement {
        let limit = self.numbers.get("limit") * self.load(None).own_ns();
        let of_machine = |machine: usize| {
            let steps = findings.iter().skip(machine).step_by(machines);
            let in_time = |finding: &&Finding| {
                finding.slice.waits.quantile(0.99).is_some_and(|ns| ns <= limit)
            };
            steps.take_while(in_time).last().map_or(0.0, |finding| finding.slice.throughput())
        };
        let values: Vec<f64> = (0..machines).map(of_machine).collect();
        let series = Mechanism::Sync(CRITICAL.to_owned());
        let mut record = Measurement::new("kernel", series, "op/s", values[0]);
        record.provenance = manycore_measure::Provenance::Simulated;
        record.parameters.insert("variants".into(), (machines as f64).into());
        if machines > 1 {
            record.low = values.iter().copied().reduce(f64::min);
            record.high = values.iter().copied().reduce(f64::max);
        }
        let limit = Metric { value: limit, unit: "ns".to_owned(), low: None, high: None };
        record.metrics.insert("limit_p99".to_owned(), limit);
        record
    }

    fn describe(&self, mut record: Measurement, threads: u32) -> Measurement {
        record.threads = threads;
        record.machine.clone_from(&self.machine.name);
        record.seed = Some(self.seed);
        let numbers = self.numbers.all().map(|(name, value)| (name.to_owned(), value.into()));
        record.parameters.extend(numbers);
        let mut parameter = |name: &str, value: f64| {
            record.parameters.insert(name.to_owned(), value.into());
        };
        parameter("compute_ns", self.compute.as_nanos() as f64);
        parameter("duration_ns", self.duration.as_nanos() as f64);
        let application = match self.application {
            Application::Processes => "processes",
            Application::Threads => "threads",
        };
        record.structure = Some(application.to_owned());
        record
    }
}

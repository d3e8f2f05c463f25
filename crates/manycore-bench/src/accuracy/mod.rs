//! `manycore sim accuracy`: the same programs on this host and on a simulated machine, whose model
//! is measured on this host.
//!
//! # Calibration and validation
//!
//! The model comes from kernels without locks ([`host`](crate::host)): loads that depend on each
//! other, atomic additions, a ping-pong of two polling CPUs, and contention by compare-and-swap. It
//! also has the cost of the kernel's calls. One constant was fitted with sections of at most 50 ns:
//! the time that an iteration of the simulated loop takes. None of these programs is among the
//! workloads below, with which the simulator is judged.
//!
//! # Why times vary
//!
//! With constant times, two threads fall into step. Which step they fall into decides how far one
//! lock is ahead of another, and natively it changes from run to run. So the time between two
//! sections varies in all workloads.

mod calibration;
mod cases;
mod command;
mod comparison;
pub(crate) mod judge;
pub mod machines;
mod native;
mod render;
pub mod structures;

use std::time::Duration;

use manycore_measure::{Claim, Measurement, Mechanism};
use manycore_sim::Model;

use crate::failure::Failure;
use crate::front::Front;
use crate::lock::Point;
use crate::mix::USUAL_DATA;
use crate::simulated::{Finding, Job, Program, Simulator, SimulatorPool, record, variant};
use crate::slice::Pinning;
use crate::work::Length;
use crate::worker::Command;
use crate::workload::Workload;
pub(crate) use comparison::Comparison;
pub use render::render;

/// The study of the simulator against this host, and against published measurements.
pub(crate) struct Accuracy;

impl Workload for Accuracy {
    fn simulated(&self) -> Vec<Front> {
        vec![Front::of::<command::Options>()]
    }

    fn simulators(&self) -> Vec<Simulator> {
        vec![
            Simulator::of::<machines::mutexes::batch::Batch>(),
            Simulator::of::<machines::programs::calls::Calls>(),
            Simulator::of::<machines::programs::contend::Contend>(),
            Simulator::of::<machines::programs::lines::Lines>(),
            Simulator::of::<machines::programs::reclaim::Reclaim>(),
        ]
    }
}

/// The compared locks: one or two of each kind.
const LOCKS: [&str; 12] = [
    "futex",
    "tas",
    "ttas",
    "ticket",
    "mcs",
    "mcs-bypass",
    "clh",
    "innodb",
    "sleep",
    "hybrid",
    "c-bo-mcs",
    "hmcs",
];

/// The study's settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// The model of this host.
    pub model: Model,
    /// Thread counts; the claims are about 1 and 2.
    pub threads: Vec<u32>,
    /// The number of native rounds.
    pub rounds: u32,
    /// The length of a native slice with few threads per CPU.
    pub slice: Duration,
    /// Simulated time for the checks of the simulator's consistency.
    pub checked: Duration,
    /// The seed of every random choice.
    pub seed: u64,
    /// The command that starts a process for the measurement of a lock.
    pub worker: Command,
    /// The pool that runs simulations.
    pub pool: SimulatorPool,
}

impl Options {
    /// 7 rounds of 1, 2, 8 and 32 threads.
    pub fn new(model: Model, worker: Command, pool: SimulatorPool) -> Self {
        Self {
            model,
            threads: vec![1, 2, 8, 32],
            rounds: 7,
            slice: Duration::from_millis(20),
            checked: Duration::from_millis(5),
            seed: 1,
            worker,
            pool,
        }
    }
}

/// The results of the study.
#[derive(Clone, Debug)]
pub struct LockAccuracy {
    /// Native and simulated records.
    pub measurements: Vec<Measurement>,
    /// What the study claims about the simulator.
    pub claims: Vec<Claim>,
    /// A line for each point that could not be compared.
    pub failures: Vec<String>,
    comparisons: Vec<Comparison>,
    /// With 2 threads: results with parked and with polling threads.
    parking: Vec<(f64, f64)>,
    /// With 2 threads: the native result, and the smallest and the largest result over variants of
    /// the machine.
    bands: Vec<(f64, [f64; 2])>,
    assumed: Vec<String>,
}

/// A workload: the length of a section, the time between two sections, the number of locks.
type Times = (Length, Length, u32);

/// The workloads. Their sections are longer than those with which the simulated loop was
/// calibrated.
fn workloads() -> [Times; 9] {
    let (fixed, about) = (Length::fixed, Length::exponential);
    [
        (fixed(100.0), about(200.0), 1),
        (fixed(100.0), about(2_000.0), 1),
        (fixed(200.0), about(1_000.0), 1),
        (fixed(500.0), about(500.0), 1),
        (fixed(1_000.0), about(2_000.0), 1),
        (about(1_000.0), about(2_000.0), 1),
        (about(300.0), about(600.0), 4),
        (fixed(5_000.0), about(5_000.0), 1),
        (about(20_000.0), about(40_000.0), 1),
    ]
}

/// Runs the study.
pub fn run(options: &Options) -> Result<LockAccuracy, Failure> {
    let points = options.points();
    let native = native::measure(options, &points)?;
    let usual = variant::alone(&options.model);
    let of_points = |points: &[Point], machines: &[String], every_turn: bool, time| {
        let mut jobs = Vec::new();
        for point in points {
            for lock in LOCKS {
                jobs.extend(machines.iter().map(|m| options.job(point, lock, m, every_turn, time)));
            }
        }
        options.pool.run(&jobs)
    };
    let mut found = LockAccuracy {
        measurements: native.measurements,
        claims: Vec::new(),
        failures: native.failures,
        comparisons: Vec::new(),
        parking: Vec::new(),
        bands: Vec::new(),
        assumed: assumed(&options.model),
    };
    let mut answers = of_points(&points, &usual, false, None).into_iter();
    for (number, point) in points.iter().enumerate() {
        for lock in LOCKS {
            match answers.next() {
                Some(Ok(finding)) => {
                    found.measurements.push(options.record(point, lock, &finding));
                    let native = native.throughput.get(&(number, lock.to_owned()));
                    found.comparisons.extend(native.map(|native| Comparison {
                        workload: render::name(point),
                        threads: point.threads,
                        mechanism: lock.to_owned(),
                        native: *native,
                        simulated: finding.slice.throughput(),
                    }));
                }
                Some(Err(error)) => {
                    found.failures.push(format!("{lock}, {} threads: {error}", point.threads));
                }
                None => {}
            }
        }
    }
    let two: Vec<Point> = points.iter().filter(|point| point.threads == 2).copied().collect();
    let checked = Some(options.checked);
    let throughput = |answer: crate::simulated::Answer| Some(answer.ok()?.slice.throughput());
    let both = variant::with_and_without_hold(&options.model);
    let parked = of_points(&two, &both, false, checked).into_iter().map(throughput);
    let polling = of_points(&two, &both, true, checked).into_iter().map(throughput);
    found.parking = parked.zip(polling).filter_map(|(a, b)| Some((a?, b?))).collect();
    found.bands = options.bands(&two, &found.comparisons, |machines| {
        of_points(&two, machines, false, checked).into_iter().map(throughput).collect()
    });
    found.claims = judge::claims(&found);
    Ok(found)
}

impl Options {
    fn points(&self) -> Vec<Point> {
        let point = |threads: &u32, (section, outside, locks): Times| Point {
            threads: *threads,
            locks,
            section,
            outside,
            reads: 0.0,
            data: USUAL_DATA,
        };
        let of_count = |threads| workloads().map(|workload| point(threads, workload));
        self.threads.iter().flat_map(of_count).collect()
    }

    fn job(
        &self,
        point: &Point,
        lock: &str,
        machine: &str,
        every_turn: bool,
        time: Option<Duration>,
    ) -> Job {
        // As long as a native slice.
        let cpus = crate::cpus::allowed().len() as u32;
        let measured = time.unwrap_or(self.slice * point.threads.div_ceil(3 * cpus));
        Job {
            machine: machine.to_owned(),
            // The model's machine may have more CPUs than this process may use.
            cpus: Some(cpus.min(self.model.machine().topology.cpus())),
            mechanism: lock.to_owned(),
            threads: point.threads,
            program: Program::of(&point.mix()),
            measured,
            pinning: Pinning::Auto,
            seed: self.seed,
            every_turn,
            patient: false,
        }
    }

    fn record(&self, point: &Point, lock: &str, finding: &Finding) -> Measurement {
        let mechanism = Mechanism::Lock(lock.to_owned());
        let mut record = record::of("lock", mechanism, std::slice::from_ref(finding), 1.0);
        record.threads = point.threads;
        record.update = Some(100.0);
        record.machine.clone_from(&self.model.name);
        record.seed = Some(self.seed);
        record.parameters.extend(point.parameters());
        record
    }

    /// The native results, with the range of simulated ones over variants of the machine.
    fn bands(
        &self,
        points: &[Point],
        comparisons: &[Comparison],
        simulate: impl FnOnce(&[String]) -> Vec<Option<f64>>,
    ) -> Vec<(f64, [f64; 2])> {
        let machines = variant::sweep(&self.model);
        let values = simulate(&machines);
        let subjects = points.iter().flat_map(|point| LOCKS.map(|lock| (*point, lock)));
        let band = |((point, lock), values): ((Point, &str), &[Option<f64>])| {
            let is_own = |c: &&Comparison| {
                (c.workload == render::name(&point), c.threads, c.mechanism.as_str())
                    == (true, point.threads, lock)
            };
            let own = comparisons.iter().find(is_own)?;
            let values: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(0.0, f64::max);
            Some((own.native, [least, most]))
        };
        subjects.zip(values.chunks(machines.len())).filter_map(band).collect()
    }
}

/// The constants of the model that were not measured, with their provenance.
fn assumed(model: &Model) -> Vec<String> {
    let guessed = |c: &&manycore_sim::model::Constant| {
        use manycore_sim::model::Provenance::{Assumed, Fitted, Unverified};
        matches!(c.provenance, Assumed | Fitted | Unverified)
    };
    let show = |c: &manycore_sim::model::Constant| {
        format!("{} = {} ({} .. {})", c.name(), c.show(c.value), c.show(c.low), c.show(c.high))
    };
    model.constants.iter().filter(guessed).map(show).collect()
}

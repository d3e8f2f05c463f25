//! `manycore sim db`: the situation of a database server on a machine with 24 CPUs, as "Locking in
//! Practice: Performance of a Database System on a Multicore Machine" (H. Han) has it.
//!
//! Terminals send transactions, each from a thread of its own; the number of these threads is the
//! *multiprogramming level*. A transaction takes a few hot latches again and again, for varying
//! times, and computes in between. Then its terminal pauses before it sends the next one.
//!
//! Some transactions update data that others read: afterwards they also change 20 rows of another
//! table, by more sections of the same latches and of the log's latch.
//!
//! The publication says which transactions were run, but not how often a transaction takes each
//! latch, nor for how long. So the shape below is assumed, with one fitted number: the mean time
//! between two sections, [`OUTSIDE_NS`].

mod command;
mod render;

use std::time::Duration;

use manycore_measure::{Measurement, Mechanism};
use manycore_sim::Model;

use crate::failure::Failure;
use crate::front::Front;
use crate::mix::{Latch, Mix, USUAL_DATA, Updating, check_data};
use crate::run_records::RunRecords;
use crate::simulated::{Job, Program, Question, SimulatorPool, record, variant};
use crate::slice::Pinning;
use crate::work::Length;
use crate::workload::Workload;
pub use render::render;

/// Sections of a transaction: it reads 100 rows. Assumed.
const SECTIONS: u32 = 100;

/// The time between two sections. Fitted to one observation: with 50 terminals on 24 CPUs, and
/// InnoDB's lock, 87 % of the CPU time goes to locks.
pub const OUTSIDE_NS: u64 = 1_500;

/// The time from the end of a transaction to the start of the same terminal's next one: the way to
/// a client on another machine and back. It is assumed, and the timer's slack comes on top.
pub const THINK_NS: u64 = 200_000;

/// The latches: how often each is taken, relative to the others, and the mean time in its sections.
/// The set of latches is assumed: the list of transactions, the table of locks, an index's root and
/// its leaves.
const LATCHES: [(f64, f64); 4] = [(2.0, 2_000.0), (2.0, 1_000.0), (4.0, 300.0), (4.0, 150.0)];

/// Rows that a transaction changes that updates.
const UPDATES: u32 = 20;

/// The latches that the change of a row takes, each once: the row's lock, the root of the index,
/// its leaf, which is also written, and the log. The times are assumed.
const LATCHES_OF_UPDATE: [(f64, f64); 5] =
    [(0.0, 0.0), (1.0, 1_000.0), (1.0, 300.0), (1.0, 300.0), (1.0, 500.0)];

/// The number of sections in the change of a row: one for each latch.
const SECTIONS_OF_UPDATE: u32 = 4;

/// The most of a share.
const ALL: f64 = 100.0;

/// The locks of the publication.
pub const LOCKS: [&str; 7] =
    ["innodb", "double-delay", "exponential", "proportional", "sleep", "half-spin", "hybrid"];

/// A database whose threads contend for a few hot latches.
pub(crate) struct DatabaseModel;

impl Workload for DatabaseModel {
    fn simulated(&self) -> Vec<Front> {
        vec![Front::of::<command::Options>()]
    }
}

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine.
    pub machine: Model,
    /// Names of locks.
    pub locks: Vec<String>,
    /// Numbers of CPUs.
    pub cpus: Vec<u32>,
    /// Multiprogramming levels.
    pub terminals: Vec<u32>,
    /// Shares of transactions that update, in percent.
    pub updates: Vec<f64>,
    /// Cache lines that a section reads and writes, one after the other.
    pub data: u32,
    /// The mean time between two sections.
    pub outside: Duration,
    /// The time from the end of a transaction to the start of the next one of the same terminal.
    pub think: Duration,
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
    /// The publication's locks, 50 terminals, 4 to 24 CPUs, 200 ms.
    pub fn new(machine: Model, pool: SimulatorPool) -> Self {
        Self {
            machine,
            locks: LOCKS.map(str::to_owned).to_vec(),
            cpus: vec![4, 8, 12, 16, 20, 24],
            terminals: vec![50],
            updates: vec![0.0],
            data: USUAL_DATA,
            outside: Duration::from_nanos(OUTSIDE_NS),
            think: Duration::from_nanos(THINK_NS),
            duration: Duration::from_millis(200),
            seed: 1,
            sweep: false,
            pool,
        }
    }
}

/// Simulates.
pub fn run(options: &Options) -> Result<RunRecords, Failure> {
    options.check()?;
    let machines = variant::of(&options.machine, options.sweep);
    let points = options.points();
    let of_point = |point: &Point| {
        let job = |machine: &String| options.job(point, machine);
        machines.iter().map(job).collect::<Vec<_>>()
    };
    let jobs: Vec<Job> = points.iter().flat_map(of_point).collect();
    let mut answers = options.pool.run(&jobs).into_iter();
    let mut found = RunRecords { measurements: Vec::new(), failures: Vec::new() };
    for point in points {
        let findings: Result<Vec<_>, _> = answers.by_ref().take(machines.len()).collect();
        match findings {
            Ok(findings) => {
                let mechanism = Mechanism::Lock(point.lock.to_owned());
                let sections = options.mix(point.update).sections_mean();
                let record = record::of("db", mechanism, &findings, sections);
                found.measurements.push(options.describe(record, &point));
            }
            Err(error) => {
                found.failures.push(format!("{}, {} CPUs: {error}", point.lock, point.cpus));
            }
        }
    }
    Ok(found)
}

/// One simulation, without the machine.
struct Point<'a> {
    update: f64,
    terminals: u32,
    lock: &'a str,
    cpus: u32,
}

impl Options {
    fn points(&self) -> Vec<Point<'_>> {
        let mut points = Vec::new();
        for update in &self.updates {
            for terminals in &self.terminals {
                for lock in &self.locks {
                    points.extend(self.cpus.iter().map(|cpus| Point {
                        update: *update,
                        terminals: *terminals,
                        lock,
                        cpus: *cpus,
                    }));
                }
            }
        }
        points
    }

    fn check(&self) -> Result<(), Failure> {
        let question = Question {
            machine: &self.machine,
            locks: &self.locks,
            threads: &self.terminals,
            cpus: &self.cpus,
            duration: Some(self.duration),
        };
        question.check()?;
        check_data(self.data).map_err(Failure::Usage)?;
        if self.outside.max(self.think) > Duration::from_secs(1) {
            let fault = "a time between sections or transactions is over a second";
            return Err(Failure::Usage(fault.into()));
        }
        match self.updates.iter().find(|share| !(0.0..=ALL).contains(*share)) {
            Some(share) => Err(Failure::Usage(format!(
                "{share} % of transactions that update: a share is between 0 and 100 %"
            ))),
            None if self.think.is_zero() && self.updates.iter().any(|share| *share > 0.0) => {
                let fault = "transactions that update are told apart by the time between two: let it be over 0";
                Err(Failure::Usage(fault.into()))
            }
            None => Ok(()),
        }
    }

    /// The work of all threads, with this percentage of updating transactions.
    fn mix(&self, update: f64) -> Mix {
        let latch = |(weight, ns)| Latch {
            weight,
            section: Length::exponential(ns),
            shared: None,
            data: self.data,
        };
        let updating = Updating {
            share: update,
            sections: UPDATES * SECTIONS_OF_UPDATE,
            locks: LATCHES_OF_UPDATE.into_iter().map(latch).collect(),
        };
        // Transactions that only read write no log, so that without others there is none.
        let log = (update > 0.0).then_some((0.0, 0.0));
        Mix {
            locks: LATCHES.into_iter().chain(log).map(latch).collect(),
            outside: Length::exponential(self.outside.as_nanos() as f64),
            reads: 0.0,
            sections: SECTIONS,
            think_ns: self.think.as_nanos() as f64,
            updating: (update > 0.0).then_some(updating),
        }
    }

    fn job(&self, point: &Point, machine: &str) -> Job {
        let Point { update, terminals, lock, cpus } = *point;
        Job {
            machine: machine.to_owned(),
            cpus: Some(cpus),
            mechanism: lock.to_owned(),
            threads: terminals,
            program: Program::of(&self.mix(update)),
            measured: self.duration,
            // A server leaves its threads to the scheduler.
            pinning: Pinning::None,
            seed: self.seed,
            every_turn: false,
            patient: terminals <= cpus,
        }
    }

    fn describe(&self, mut record: Measurement, point: &Point) -> Measurement {
        let mix = self.mix(point.update);
        record.threads = point.terminals;
        record.update = Some(point.update);
        record.machine.clone_from(&self.machine.name);
        record.seed = Some(self.seed);
        let numbers = [
            ("cpus", f64::from(point.cpus)),
            ("duration_ns", self.duration.as_nanos() as f64),
            ("sections", mix.sections_mean()),
            ("section_ns", mix.section_mean_ns()),
            ("data_lines", f64::from(self.data)),
            ("outside_ns", self.outside.as_nanos() as f64),
            ("think_ns", self.think.as_nanos() as f64),
        ];
        let numbers = numbers.map(|(name, number)| (name.to_owned(), number.into()));
        record.parameters.extend(numbers);
        record
    }
}

//! `manycore sim db`: the situation of a database server on a machine with 24 CPUs, as "Locking in Practice: Performance
//! of a Database System on a Multicore Machine" (H. Han) has it.
//!
//! Terminals send transactions, each from a thread of its own, of which there are as many as the *multiprogramming
//! level*. A transaction takes a few hot latches again and again, for times that vary, and computes in between. Then its
//! terminal takes a while to send the next one.
//!
//! The publication says what was run, not how often a transaction takes which latch, nor for how long. So the shape below
//! is assumed, with one number fitted: the mean time between two sections, [`OUTSIDE_NS`].

mod render;

use std::time::Duration;

use manycore_report::{Measurement, Mechanism};
use manycore_sim::Model;

use super::crew::Crew;
use super::job::{Job, Program};
use super::question::Question;
use super::{record, variant};
use crate::failure::Failure;
use crate::lock::Found;
use crate::mix::{Latch, Mix};
use crate::slice::Pinning;
use crate::work::Length;
pub use render::render;

/// Sections of a transaction: it reads 100 rows. Assumed.
const SECTIONS: u32 = 100;

/// Time between two sections. Fitted to one observation: with 50 terminals on 24 CPUs, and InnoDB's lock, 87 % of the CPU
/// time goes to locks.
pub const OUTSIDE_NS: u64 = 1_500;

/// From the end of a transaction to the start of the next one of the same terminal, beside the timer's slack: the way to
/// a client on another machine and back. Assumed.
pub const THINK_NS: u64 = 200_000;

/// The latches: how often each is taken, relative to the others, and the mean time in its sections. Assumed: the list of
/// transactions, the table of locks, an index's root and its leaves.
const LATCHES: [(f64, f64); 4] = [(2.0, 2_000.0), (2.0, 1_000.0), (4.0, 300.0), (4.0, 150.0)];

/// The locks of the publication.
pub const LOCKS: [&str; 7] =
    ["innodb", "double-delay", "exponential", "proportional", "sleep", "half-spin", "hybrid"];

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
    /// The mean time between two sections.
    pub outside: Duration,
    /// From the end of a transaction to the start of the next one of the same terminal.
    pub think: Duration,
    /// Simulated time that is counted.
    pub duration: Duration,
    /// The seed of every random choice.
    pub seed: u64,
    /// Whether to vary what nobody knows about the machine.
    pub sweep: bool,
    /// Who does it.
    pub crew: Crew,
}

impl Options {
    /// The publication's locks, 50 terminals, 4 to 24 CPUs, 200 ms.
    pub fn new(machine: Model, crew: Crew) -> Self {
        Self {
            machine,
            locks: LOCKS.map(str::to_owned).to_vec(),
            cpus: vec![4, 8, 12, 16, 20, 24],
            terminals: vec![50],
            outside: Duration::from_nanos(OUTSIDE_NS),
            think: Duration::from_nanos(THINK_NS),
            duration: Duration::from_millis(200),
            seed: 1,
            sweep: false,
            crew,
        }
    }
}

/// Simulates.
pub fn run(options: &Options) -> Result<Found, Failure> {
    options.check()?;
    let machines = variant::of(&options.machine, options.sweep);
    let mut points = Vec::new();
    for terminals in &options.terminals {
        for lock in &options.locks {
            points.extend(options.cpus.iter().map(|cpus| (*terminals, lock.as_str(), *cpus)));
        }
    }
    let of_point = |(terminals, lock, cpus): &(u32, &str, u32)| {
        let job = |machine: &String| options.job(*terminals, lock, *cpus, machine);
        machines.iter().map(job).collect::<Vec<_>>()
    };
    let jobs: Vec<Job> = points.iter().flat_map(of_point).collect();
    let mut answers = options.crew.run(&jobs).into_iter();
    let mut found = Found { measurements: Vec::new(), failures: Vec::new() };
    for (terminals, lock, cpus) in points {
        let findings: Result<Vec<_>, _> = answers.by_ref().take(machines.len()).collect();
        match findings {
            Ok(findings) => {
                let mechanism = Mechanism::Lock(lock.to_owned());
                let record = record::of("db", mechanism, &findings, f64::from(SECTIONS));
                found.measurements.push(options.describe(record, terminals, cpus));
            }
            Err(error) => found.failures.push(format!("{lock}, {cpus} CPUs: {error}")),
        }
    }
    Ok(found)
}

impl Options {
    fn check(&self) -> Result<(), Failure> {
        let question = Question {
            machine: &self.machine,
            locks: &self.locks,
            threads: &self.terminals,
            cpus: &self.cpus,
            duration: Some(self.duration),
        };
        question.check()?;
        if self.outside.max(self.think) > Duration::from_secs(1) {
            let fault = "a time between sections or transactions is over a second";
            return Err(Failure::Usage(fault.into()));
        }
        Ok(())
    }

    /// What all threads do.
    fn mix(&self) -> Mix {
        let latch = |(weight, ns)| Latch { weight, section: Length::exponential(ns), shared: None };
        Mix {
            locks: LATCHES.into_iter().map(latch).collect(),
            outside: Length::exponential(self.outside.as_nanos() as f64),
            reads: 0.0,
            sections: SECTIONS,
            think_ns: self.think.as_nanos() as f64,
        }
    }

    fn job(&self, terminals: u32, lock: &str, cpus: u32, machine: &str) -> Job {
        Job {
            machine: machine.to_owned(),
            cpus: Some(cpus),
            mechanism: lock.to_owned(),
            threads: terminals,
            program: Program::Sections(self.mix()),
            measured: self.duration,
            // A server leaves its threads to the scheduler.
            pinning: Pinning::None,
            seed: self.seed,
            every_turn: false,
            patient: terminals <= cpus,
        }
    }

    fn describe(&self, mut record: Measurement, terminals: u32, cpus: u32) -> Measurement {
        record.threads = terminals;
        record.machine.clone_from(&self.machine.name);
        record.seed = Some(self.seed);
        let numbers = [
            ("cpus", f64::from(cpus)),
            ("duration_ns", self.duration.as_nanos() as f64),
            ("sections", f64::from(SECTIONS)),
            ("section_ns", self.mix().section_mean_ns()),
            ("outside_ns", self.outside.as_nanos() as f64),
            ("think_ns", self.think.as_nanos() as f64),
        ];
        let numbers = numbers.map(|(name, number)| (name.to_owned(), number.into()));
        record.parameters.extend(numbers);
        record
    }
}

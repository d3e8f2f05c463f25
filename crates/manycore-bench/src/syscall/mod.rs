//! `manycore sim syscall`: a server's system calls on the CPUs of its workers, or near the network
//! card, as in "System-Call-Level Core Affinity for Improving Network Performance" (J. Uhm, J.-Y.
//! Cho, H.-W. Jin).
//!
//! A worker process for each client accepts a connection, reads a request, computes a page, answers
//! and closes, by the calls that strace shows of Apache's prefork. The kernel's data about a
//! connection are cache lines, which calls touch on one CPU and the card's interrupts on another.
//! In place, a worker's own CPU executes its calls. Moved, a thread for each worker on the card's
//! package executes them, over the channel of `manycore-channel`, which is simulated, too.
//!
//! | module | what is in it |
//! |---|---|
//! | `assumptions` | every number that the model needs: none is measured |
//! | `kernel` | connections, calls and interrupts |
//! | `channel` | between a worker and its syscall thread |
//! | `program` | the threads |
//! | `render` | the results for a person |

mod assumptions;
mod channel;
mod command;
mod kernel;
mod program;
mod render;

use std::time::Duration;

use manycore_measure::{Measurement, Mechanism};
use manycore_sim::Model;

use crate::failure::Failure;
use crate::front::Front;
use crate::run_records::RunRecords;
use crate::simulated::{
    Finding, Job, Program, Question, SimulatedCampaign, Simulator, SimulatorPool, record, variant,
};
use crate::slice::Pinning;
use crate::workload::Workload;
pub use assumptions::{Assumptions, Counts, Times};
pub use render::render;

/// Calls where they are made: the base line.
pub const IN_PLACE: &str = "in-place";

/// The mechanism with a syscall thread for each worker, on the card's package.
pub const THREAD: &str = "thread";

/// A server, and where its system calls are executed.
pub(crate) struct ServerModel;

impl Workload for ServerModel {
    fn simulated(&self) -> Vec<Front> {
        vec![Front::of::<command::Options>()]
    }

    fn simulators(&self) -> Vec<Simulator> {
        vec![Simulator::of::<Assumptions>()]
    }
}

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine: the card is at its first package.
    pub machine: Model,
    /// Numbers of clients, each with a worker.
    pub clients: Vec<u32>,
    /// What is not known.
    pub assumed: Assumptions,
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
    /// 1 to 256 clients, 20 ms.
    pub fn new(machine: Model, pool: SimulatorPool) -> Self {
        Self {
            machine,
            clients: vec![1, 4, 16, 64, 128, 256],
            assumed: Assumptions::default(),
            duration: Duration::from_millis(20),
            seed: 1,
            sweep: false,
            pool,
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let topology = self.machine.machine().topology;
        let question = Question {
            machine: &self.machine,
            locks: &[],
            threads: &self.clients,
            cpus: &[],
            duration: Some(self.duration),
        };
        question.check()?;
        let Assumptions { page_ns, round_trip_ns, think_ns, spin_ns, .. } = self.assumed;
        let times = [page_ns, round_trip_ns, think_ns, spin_ns];
        let faults = [
            (topology.cores() == topology.cores_per_socket).then(|| {
                format!("{} has one package: nothing can be far from the card", self.machine.name)
            }),
            (!(1..topology.cores_per_socket).contains(&self.assumed.interrupt_cpus)).then(|| {
                let most = topology.cores_per_socket - 1;
                format!(
                    "interrupts need between 1 and {most} CPUs of a package, so that some are left"
                )
            }),
            self.clients.iter().find(|clients| **clients > 1_000).map(|clients| {
                format!("{clients} clients, each with two threads: at most 1000 can be simulated")
            }),
            times
                .iter()
                .any(|ns| !(0.0..=1e9).contains(ns))
                .then(|| "a time is not between 0 and a second".to_owned()),
        ];
        match faults.into_iter().flatten().next() {
            Some(fault) => Err(Failure::Usage(fault)),
            None => Ok(()),
        }
    }
}

/// Simulates.
pub fn run(options: &Options) -> Result<RunRecords, Failure> {
    options.check()?;
    let campaign = SimulatedCampaign {
        points: &options.clients,
        mechanisms: &[IN_PLACE.to_owned(), THREAD.to_owned()],
        machines: &variant::of(&options.machine, options.sweep),
        pool: &options.pool,
    };
    let job = |clients: &u32, mechanism: &str, machine: &str| Job {
        machine: machine.to_owned(),
        cpus: None,
        mechanism: mechanism.to_owned(),
        threads: *clients,
        program: Program::of(&options.assumed),
        measured: options.duration,
        // Starting CPUs are given by the program.
        pinning: Pinning::None,
        seed: options.seed,
        every_turn: false,
        patient: false,
    };
    Ok(campaign.run(job, |clients, mechanism, findings, base| {
        options.describe(*clients, mechanism, findings, base)
    }))
}

impl Options {
    fn describe(
        &self,
        clients: u32,
        mechanism: &str,
        findings: &[Finding],
        base: Option<&[Finding]>,
    ) -> Measurement {
        let mut record =
            record::of("syscall", Mechanism::Sync(mechanism.to_owned()), findings, 1.0);
        record.metrics = std::mem::take(&mut record.metrics)
            .into_iter()
            .map(|(name, metric)| (name.replace("wait_", "latency_"), metric))
            .collect();
        let ratios = base.into_iter().flat_map(|base| record::ratios(findings, base));
        record.metrics.extend(ratios.filter(|(name, _)| name == "ratio"));
        record.threads = clients;
        record.machine.clone_from(&self.machine.name);
        record.seed = Some(self.seed);
        let assumed = self.assumed.listed().into_iter();
        record.parameters.extend(assumed.map(|(name, value, ..)| (name.to_owned(), value.into())));
        let duration = self.duration.as_nanos() as f64;
        record.parameters.insert("duration_ns".to_owned(), duration.into());
        record
    }
}

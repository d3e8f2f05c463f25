//! The simulations that stand for published measurements: a job for each point, and its result.

use std::collections::BTreeMap;
use std::time::Duration;

use manycore_sim::Model;
use serde::Deserialize;

use super::measure::Measure;
use super::programs::calls::Calls;
use super::programs::contend::{Contend, Filling};
use super::programs::lines::{self, Lines};
use super::programs::reclaim::Reclaim;
use crate::line_accesses::Accesses;
use crate::popularity::Popularity;
use crate::set::{Keys, Task};
use crate::simulated::{Beside, Finding, Job, Program};
use crate::slice::Pinning;
use crate::structure::Load;

/// The experiment of a case, with its numbers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Experiment {
    /// Threads use a set. Half of the updates insert, half remove.
    Set {
        structure: String,
        initial: u64,
        /// The share of updates, in percent.
        update: f64,
        /// The exponent of the keys' popularity; without it, all keys are equally popular.
        zipf: Option<f64>,
        /// The number of buckets of a hash table; without it, a tenth of the number of keys.
        buckets: Option<u64>,
        /// The time of an operation apart from its accesses.
        #[serde(default = "beside")]
        beside_ns: f64,
        simulate_us: u64,
    },
    /// Threads use a table of lists, whose nodes a reclamation scheme frees.
    Reclaim { program: Reclaim, simulate_us: u64 },
    /// Threads take one lock, or change one word.
    Sections {
        section_ns: f64,
        outside_ns: f64,
        /// Other times beside a section, by mechanism.
        #[serde(default)]
        outside_of: BTreeMap<String, f64>,
        /// The share of sections that only read, in percent.
        #[serde(default)]
        reads: f64,
        /// The number of lines that a section uses.
        #[serde(default = "one")]
        data: u32,
        #[serde(default = "usual_time")]
        simulate_us: u64,
    },
    /// Threads call a kernel.
    Calls {
        program: Calls,
        #[serde(default = "usual_time")]
        simulate_us: u64,
    },
    /// Cores access a line.
    Lines { accesses: Accesses },
    /// Not simulated: the set says why.
    PublishedOnly {},
}

fn beside() -> f64 {
    5.0
}

fn one() -> u32 {
    1
}

fn usual_time() -> u64 {
    200
}

/// A point of the grid, for any experiment.
pub(super) struct Asked<'a> {
    pub model: &'a Model,
    pub filling: Filling,
    pub ours: &'a str,
    pub threads: u32,
    pub seed: u64,
}

impl Experiment {
    /// Whether the experiment can be simulated.
    pub fn is_simulated(&self) -> bool {
        !matches!(self, Self::PublishedOnly {})
    }

    /// The simulation of a point. The experiment can be simulated.
    pub fn job(&self, asked: &Asked) -> Job {
        let cpus = asked.model.machine().topology.cpus();
        let (program, micros) = self.program(asked);
        let each = match self {
            Self::Calls { program, .. } => program.call.threads_each(),
            _ => 1,
        };
        let threads = asked.threads * each;
        // The simulation has to last until waits that end in sleep have done so.
        let oversubscribed = threads > cpus;
        let micros = if oversubscribed { micros.max(20_000) } else { micros };
        Job {
            machine: asked.model.to_toml(),
            cpus: None,
            mechanism: asked.ours.to_owned(),
            threads,
            program,
            measured: Duration::from_micros(micros),
            pinning: Pinning::Auto,
            seed: asked.seed,
            every_turn: false,
            // No thread waits for a CPU, so waiters in queues have no reason to sleep.
            patient: !oversubscribed,
        }
    }

    fn program(&self, asked: &Asked) -> (Program, u64) {
        match self {
            Self::Set { structure, initial, update, zipf, buckets, beside_ns, simulate_us } => {
                let usual = Keys::of(*initial);
                let keys = Keys {
                    buckets: buckets.unwrap_or(usual.buckets),
                    popularity: zipf.map_or(Popularity::Uniform, Popularity::Zipf),
                    seed: asked.seed,
                    ..usual
                };
                let task = Task {
                    structure: structure.clone(),
                    sync: asked.ours.to_owned(),
                    threads: asked.threads,
                    update: *update,
                    keys,
                };
                let load = Load { task, beside: Beside::each(*beside_ns), operations: None };
                (Program::of(&load), *simulate_us)
            }
            Self::Reclaim { program, simulate_us } => (Program::of(program), *simulate_us),
            Self::Calls { program, simulate_us } => (Program::of(program), *simulate_us),
            Self::Sections { section_ns, outside_ns, outside_of, reads, data, simulate_us } => {
                let program = Contend {
                    section_ns: *section_ns,
                    outside_ns: *outside_of.get(asked.ours).unwrap_or(outside_ns),
                    reads: *reads,
                    data: *data,
                    filling: asked.filling,
                };
                (Program::of(&program), *simulate_us)
            }
            Self::Lines { accesses } => (Program::of(&Lines { accesses: *accesses }), 1),
            Self::PublishedOnly {} => unreachable!("the points of these are not chosen"),
        }
    }

    /// The result of a simulation, in the unit of the published value.
    pub fn value(&self, finding: &Finding, measure: Measure, threads: u32, ghz: f64) -> f64 {
        let throughput = finding.slice.throughput();
        let cycles = || finding.sight.get(lines::CYCLES).copied().unwrap_or(f64::NAN);
        match measure {
            Measure::Rate => throughput,
            Measure::TimeOfThread => f64::from(threads) / throughput * 1e9,
            Measure::Time => 1e9 / throughput,
            Measure::Latency => cycles() / ghz,
            Measure::Cycles => cycles(),
        }
    }
}

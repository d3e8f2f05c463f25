//! `manycore bench index`: threads use an index as YCSB does, by several mechanisms in turn.
//!
//! | module | what is in it |
//! |---|---|
//! | `data` | keys and values, made of numbers |
//! | `task` | the workloads: which operations on which records |
//! | `operations` | what one thread does, natively and simulated alike |
//! | `any_index` | an index of whatever structure, and what it can do |
//! | `own`, `peers` | the library's, and those of others |
//! | `slice`, `verify` | one short run, and whether all is there in the end |
//! | `campaign`, `grid`, `result` | points, rounds of slices, records |
//! | `simulated` | the same on a simulated machine |
//! | `flags`, `command`, `simulated_command`, `render`, `picture` | the commands, and their results for a person |
//!
//! ```no_run
//! use manycore_bench::index::{self, Options};
//! use manycore_bench::worker::Command;
//!
//! // The arguments that lead this program to `worker::serve`.
//! let worker = Command::this_executable(["bench", "worker"])?;
//! let found = index::run(&Options::new(worker))?;
//! println!("{}", index::render(&found.measurements));
//! # Ok::<(), manycore_bench::Failure>(())
//! ```

mod any_index;
pub(crate) mod campaign;
mod command;
mod data;
#[cfg(test)]
mod exercise;
mod flags;
mod grid;
mod operations;
mod own;
mod peers;
mod picture;
mod render;
mod result;
pub mod simulated;
mod simulated_command;
mod slice;
mod task;
mod verify;

use std::time::Duration;

use manycore_measure::paired::Rounds;

use crate::campaign::{fault, subjects};
use crate::failure::Failure;
use crate::found::Found;
use crate::front::Front;
use crate::simulated::Simulator;
use crate::slice::Pinning;
use crate::worker::{Command, Executor};
use crate::workload::Workload;
pub use data::{KeyKind, ValueSize};
pub use grid::TaskGrid;
pub use render::render;
#[cfg(test)]
pub(crate) use slice::Slice;

pub(crate) use task::key_of;
pub use task::{Mix, Records, Task};

/// Threads that use an index.
pub(crate) struct Indexes;

impl Workload for Indexes {
    fn measured(&self) -> Vec<Front> {
        vec![Front::of::<command::Options>()]
    }

    fn simulated(&self) -> Vec<Front> {
        vec![Front::of::<simulated_command::Options>()]
    }

    fn executors(&self, _: &str) -> Vec<Executor> {
        vec![slice::executor()]
    }

    fn simulators(&self) -> Vec<Simulator> {
        vec![Simulator::of::<simulated::Load>()]
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// What threads do.
    pub workload: TaskGrid,
    /// Names of indexes of others, to be measured beside.
    pub against: Vec<String>,
    /// The length of a slice with few threads per CPU; with many, slices are longer.
    pub slice: Duration,
    /// Operations of each thread in a slice, instead of a time.
    pub operations: Option<u64>,
    /// How often to repeat.
    pub rounds: Rounds,
    /// Which CPUs the threads run on.
    pub pinning: Pinning,
    /// How to start a worker.
    pub worker: Command,
    /// Whether to show progress, if standard error is a terminal.
    pub progress: bool,
}

impl Options {
    /// The usual workload, in 31 rounds.
    pub fn new(worker: Command) -> Self {
        Self {
            workload: TaskGrid::default(),
            against: Vec::new(),
            slice: Duration::from_millis(30),
            operations: None,
            rounds: Rounds::Count(31),
            pinning: Pinning::Auto,
            worker,
            progress: false,
        }
    }

    fn check(&self) -> Result<(), Failure> {
        self.workload.check(own::native::CONTENDERS)?;
        let structure = &self.workload.structure;
        let known = any_index::names(peers::CONTENDERS, structure);
        let unknown = self.against.iter().find(|name| !known.contains(&name.as_str()));
        let faults = [
            unknown.map(|unknown| {
                let known = known.join(", ");
                format!("no {structure} of others is called `{unknown}`: choose from {known}")
            }),
            self.workload.refusal(peers::CONTENDERS, &self.against),
            fault(self.slice, self.operations, self.rounds).map(str::to_owned),
        ];
        match faults.into_iter().flatten().next() {
            Some(fault) => Err(Failure::Usage(fault)),
            None => Ok(()),
        }
    }
}

/// Measures.
pub fn run(options: &Options) -> Result<Found, Failure> {
    options.check()?;
    let syncs = subjects(&options.workload.syncs, &options.against);
    let samples = campaign::run(options, options.workload.points(), syncs)?;
    Ok(Found { measurements: samples.measurements()?, failures: samples.failures() })
}

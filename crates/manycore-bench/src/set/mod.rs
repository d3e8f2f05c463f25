//! `manycore bench set`: threads use a set, by several mechanisms in turn.
//!
//! ```no_run
//! use manycore_bench::set::{self, Options};
//! use manycore_bench::worker::Command;
//!
//! // The arguments that lead this program to `worker::serve`.
//! let worker = Command::this_executable(["bench", "worker"])?;
//! let found = set::run(&Options::new(worker))?;
//! println!("{}", set::render(&found.measurements));
//! # Ok::<(), manycore_bench::Failure>(())
//! ```

pub(crate) mod campaign;
pub(crate) mod command;
pub(crate) mod contenders;
mod flags;
mod grid;
pub mod peers;
mod render;
mod result;
pub mod simulated;
mod simulated_command;
mod slice;
mod task;

use std::time::Duration;

pub use manycore_measure::paired::Rounds;

use crate::campaign::{fault, subjects};
use crate::failure::Failure;
use crate::found::Found;
use crate::front::Front;
pub use crate::popularity::Popularity;
use crate::simulated::Simulator;
use crate::slice::Pinning;
use crate::worker::{Command, Executor};
use crate::workload::Workload;
pub use contenders::AnySet;
pub use grid::TaskGrid;
pub use render::render;
pub(crate) use result::describe;
pub use slice::executor;
pub(crate) use slice::{Settings, Slice, apply};
pub(crate) use task::Operations;
pub use task::{Keys, Task};

/// Threads that use a set.
pub(crate) struct Sets;

impl Workload for Sets {
    fn measured(&self) -> Vec<Front> {
        vec![Front::of::<command::Options>()]
    }

    fn simulated(&self) -> Vec<Front> {
        vec![Front::of::<simulated_command::Options>()]
    }

    fn executors(&self, _: &str) -> Vec<Executor> {
        vec![slice::executor(&[])]
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
    /// Names of sets of others, to be measured beside: see [`peers`].
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
    /// How to start one that has the sets of C libraries; `None` if that program is not there.
    pub foreign: Option<Command>,
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
            foreign: None,
            progress: false,
        }
    }

    fn check(&self) -> Result<(), Failure> {
        self.workload.check(&contenders::native::names(&self.workload.structure))?;
        peers::check(&self.against, &self.workload.structure, self.foreign.is_some())?;
        match fault(self.slice, self.operations, self.rounds) {
            Some(fault) => Err(Failure::Usage(fault.into())),
            None => Ok(()),
        }
    }
}

/// What there is of a structure: `lock:adaptive`, and all mechanisms that are no locks. Nothing of
/// one that is unknown.
pub fn usual_syncs(structure: &str) -> Vec<String> {
    let names = contenders::native::names(structure);
    let first = ["lock:adaptive".to_owned()];
    first.into_iter().chain(names.into_iter().filter(|name| !name.starts_with("lock:"))).collect()
}

/// Measures.
pub fn run(options: &Options) -> Result<Found, Failure> {
    options.check()?;
    let syncs = subjects(&options.workload.syncs, &options.against);
    let samples = campaign::run(options, options.workload.points(), syncs)?;
    Ok(Found { measurements: samples.measurements()?, failures: samples.failures() })
}

//! `manycore bench set`: threads use a set, with one mechanism after another.
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

mod ascylib;
pub(crate) mod command;
pub(crate) mod contenders;
mod durable;
mod flags;
mod grid;
pub mod peers;
mod render;
mod result;
pub mod simulated;
mod simulated_command;
mod slice;
mod task;

pub use manycore_measure::paired::Rounds;

use crate::failure::Failure;
use crate::front::Front;
pub use crate::popularity::Popularity;
use crate::run_records::RunRecords;
use crate::simulated::Simulator;
use crate::structure::{self, Load, NativeOptions};
use crate::worker::Executor;
use crate::workload::Workload;
pub use contenders::AnySet;
pub use grid::TaskGrid;
pub use render::render;
pub(crate) use result::describe;
pub(crate) use slice::apply;
pub use slice::executor;
pub(crate) use task::Operations;
pub use task::{Keys, Task};

/// The benchmark of sets.
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
        vec![Simulator::of::<Load<Task>>()]
    }
}

/// What to measure.
pub type Options = NativeOptions<TaskGrid>;

/// The mechanisms of a structure that run by default: `lock:adaptive`, and all that are no locks.
/// Empty for an unknown structure.
pub fn usual_syncs(structure: &str) -> Vec<String> {
    let names = contenders::native::names(structure);
    let first = ["lock:adaptive".to_owned()];
    first.into_iter().chain(names.into_iter().filter(|name| !name.starts_with("lock:"))).collect()
}

/// Runs the benchmark.
pub fn run(options: &Options) -> Result<RunRecords, Failure> {
    structure::measure(options)
}

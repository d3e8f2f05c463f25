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
//! | `grid`, `result` | points, and what records say of them |
//! | `simulated` | the same on a simulated machine |
//! | `flags`, `command`, `simulated_command`, `render`, `picture` | commands; results for people |
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

use crate::failure::Failure;
use crate::front::Front;
use crate::run_records::RunRecords;
use crate::simulated::Simulator;
use crate::structure::{self, Load, NativeOptions};
use crate::worker::Executor;
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
        vec![Simulator::of::<Load<Task>>()]
    }
}

/// What to measure.
pub type Options = NativeOptions<TaskGrid>;

/// Measures.
pub fn run(options: &Options) -> Result<RunRecords, Failure> {
    structure::measure(options)
}

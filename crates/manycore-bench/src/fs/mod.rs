//! `manycore bench fs`: threads use KhronOS' file system in memory, by several mechanisms in turn.
//!
//! | module | what is in it |
//! |---|---|
//! | `own` | the file system, native and simulated |
//! | `task`, `grid`, `result` | what threads do, points, and what records say of them |
//! | `slice` | one short run, and a check of the file system after it |
//! | `simulated` | the same on a simulated machine |
//! | `pairs` | lines that two calls share |
//! | `flags`, `command`, `simulated_command`, `render` | the commands; results for people |

mod command;
mod flags;
mod grid;
mod own;
pub mod pairs;
mod render;
mod result;
pub mod simulated;
mod simulated_command;
mod slice;
mod task;

use crate::failure::Failure;
use crate::front::Front;
use crate::run_records::RunRecords;
use crate::simulated::Simulator;
use crate::structure::{self, Load, NativeOptions};
use crate::worker::Executor;
use crate::workload::Workload;
pub use grid::TaskGrid;
pub use render::render;
pub use task::Task;

/// Threads that use a file system.
pub(crate) struct FileSystems;

impl Workload for FileSystems {
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
        vec![Simulator::of::<Load<Task>>(), Simulator::of::<pairs::Pair>()]
    }
}

/// What to measure.
pub type Options = NativeOptions<TaskGrid>;

/// Measures.
pub fn run(options: &Options) -> Result<RunRecords, Failure> {
    structure::measure(options)
}

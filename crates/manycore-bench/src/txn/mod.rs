//! `manycore bench txn`: threads run transactions on a database, by several mechanisms in turn.
//!
//! | module | what is in it |
//! |---|---|
//! | `database` | a database of whatever mechanism: tables, rows, what a transaction may do |
//! | `task` | the workloads |
//! | `ycsb`, `tpcc` | their transactions, what is there at the start, and what must hold |
//! | `operations` | what one thread does, natively and simulated alike |
//! | `own`, `peers` | databases of the library's maps, and of trees under locks |
//! | `slice` | one short run, and whether all is there in the end |
//! | `grid`, `result` | points, and what records say of them |
//! | `simulated` | the same on a simulated machine |
//! | `flags`, `command`, `simulated_command`, `render` | the commands; results for people |
//!
//! ```no_run
//! use manycore_bench::txn::{self, Options};
//! use manycore_bench::worker::Command;
//!
//! // The arguments that lead this program to `worker::serve`.
//! let worker = Command::this_executable(["bench", "worker"])?;
//! let found = txn::run(&Options::new(worker))?;
//! println!("{}", txn::render(&found.measurements));
//! # Ok::<(), manycore_bench::Failure>(())
//! ```

mod command;
mod database;
#[cfg(test)]
mod exercise;
mod flags;
mod grid;
mod operations;
mod own;
mod peers;
mod render;
mod result;
pub mod simulated;
mod simulated_command;
mod slice;
mod task;
mod tpcc;
mod ycsb;

use crate::failure::Failure;
use crate::front::Front;
use crate::run_records::RunRecords;
use crate::simulated::Simulator;
use crate::structure::{self, Load, NativeOptions};
use crate::worker::Executor;
use crate::workload::Workload;
pub use grid::TaskGrid;
pub use render::render;
pub use task::{Mix, Size, Task};

/// Threads that run transactions.
pub(crate) struct Transactions;

impl Workload for Transactions {
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

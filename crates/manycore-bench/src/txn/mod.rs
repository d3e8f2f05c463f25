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
//! | `campaign`, `grid`, `result` | points, rounds of slices, records |
//! | `simulated` | the same on a simulated machine |
//! | `flags`, `command`, `simulated_command`, `render` | the commands, and their results for a person |
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

mod campaign;
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
        vec![Simulator::of::<simulated::Load>()]
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// What threads do.
    pub workload: TaskGrid,
    /// Names of databases of others, to be measured beside.
    pub against: Vec<String>,
    /// The length of a slice with few threads per CPU; with many, slices are longer.
    pub slice: Duration,
    /// Transactions of each thread in a slice, instead of a time.
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
    /// The usual workloads, in 31 rounds.
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
        self.workload.check(&database::names(own::native::CONTENDERS))?;
        let known = database::names(peers::CONTENDERS);
        let unknown = self.against.iter().find(|name| !known.contains(name));
        let unknown = unknown.map(|unknown| {
            let known = known.join(", ");
            format!("no database of others is called `{unknown}`: choose from {known}")
        });
        let fault = fault(self.slice, self.operations, self.rounds).map(str::to_owned);
        match unknown.or(fault) {
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

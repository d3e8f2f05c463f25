//! The common parts of all workloads' commands: flags, and the printing of results.
//!
//! | module | what is in it |
//! |---|---|
//! | `benchmark` | a benchmark as a command: flags, measuring, rows, text, picture |
//! | `output` | how results are printed, and which of them are failures |
//! | `length`, `slices`, `simulators`, `plot` | flags that several have |

mod benchmark;
mod length;
mod output;
mod plot;
mod simulators;
mod slices;

use manycore_launch::failure::Result;

use crate::worker;
pub use benchmark::{Benchmark, Front, Outcome, Run};
pub use length::parse as parse_length;
pub use output::{failed_claims, failed_locks, print_results};
pub use plot::{Canvas, PlotOptions};
pub use simulators::{SimulatorOptions, VariationOptions, say_troubles};
pub use slices::{Pin, SliceOptions};

/// How this command starts its workers.
pub fn worker_command() -> Result<worker::Command> {
    Ok(worker::Command::this_executable(["bench", "worker"])?)
}

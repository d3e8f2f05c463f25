//! `manycore sim`: workloads on simulated machines.

mod accuracy;
mod contended;
pub mod crew;
mod db;
mod kernel;
mod many;
mod reverse_map;
mod set;
mod syscall;

use clap::{Args, Subcommand};

use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore sim lock --machine xeon-e7-8870-8x15 --threads 1,15,120
  manycore sim many --quick
  manycore sim set --machine xeon-8180-8x28x2 --structure hash --threads 56,448
  manycore sim db --lock innodb,sleep,hybrid
  manycore sim kernel --of threads --threads 30,120
  manycore sim rmap --machine xeon-e7-8870-8x15 --threads 1,30,120
  manycore sim syscall --machine ivybridge-2x10 --clients 16,256
  manycore machines

What may be concluded: which lock is ahead, about where each stops scaling, and
why. Not how many operations a second a machine does.
";

/// Run workloads on simulated machines with many cores
#[derive(Args, Debug)]
#[command(after_long_help = NOTES, disable_help_subcommand = true)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Lock(contended::Options),
    Many(many::Options),
    Set(set::Options),
    Db(db::Options),
    Kernel(kernel::Options),
    Rmap(reverse_map::Options),
    Syscall(syscall::Options),
    Accuracy(accuracy::Options),
    /// A process that simulates; this command starts it itself.
    #[command(hide = true)]
    Worker,
}

/// Simulates, and prints what came out.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    match &options.what {
        What::Lock(options) => contended::run(options, terminal),
        What::Many(options) => many::run(options, terminal),
        What::Set(options) => set::run(options, terminal),
        What::Db(options) => db::run(options, terminal),
        What::Kernel(options) => kernel::run(options, terminal),
        What::Rmap(options) => reverse_map::run(options, terminal),
        What::Syscall(options) => syscall::run(options, terminal),
        What::Accuracy(options) => accuracy::run(options, terminal),
        What::Worker => manycore_bench::serve_simulator().map_err(|error| {
            Failure::failed(format!("the simulation that this worker serves is gone: {error}"))
        }),
    }
}

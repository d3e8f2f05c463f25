//! `manycore sim`: workloads on simulated machines.

use clap::{Args, Subcommand};
use manycore_bench::Chosen;

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
    #[command(flatten)]
    Registered(Chosen<true>),
    /// A process that simulates; this command starts it itself.
    #[command(hide = true)]
    Worker,
}

/// Simulates, and prints what came out.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    match &options.what {
        What::Registered(chosen) => chosen.run(terminal),
        What::Worker => manycore_bench::serve_simulator().map_err(|error| {
            Failure::failed(format!("the simulation that this worker serves is gone: {error}"))
        }),
    }
}

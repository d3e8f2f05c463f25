//! `manycore bench`: the locks and sets themselves, a database under each lock, loads on the kernel's, and system calls.

mod kernel_load;
mod mariadb;
mod syscalls;

use std::io;

use clap::{Args, Subcommand};
use manycore_bench::Chosen;

use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore bench lock --threads 1,2,8 --section 50ns,1us
  manycore bench set --structure list --initial 1000 --update 2,20,80
  manycore bench uncontended --preload
  manycore bench grid --quick
  manycore bench rmap --threads 8 --update 50,100
  manycore bench mariadb --lock innodb,hybrid --terminals 50
  manycore bench forks --plot forks.svg
  manycore bench faults --threads 1,2,8 --update 0,50
  manycore bench syscalls --part apache --clients 1,64 --plot apache.svg
";

/// Measure locks and sets without a program around them, a database with them, the kernel's locks, and moved system calls
#[derive(Args, Debug)]
#[command(after_long_help = NOTES, disable_help_subcommand = true)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    #[command(flatten)]
    Registered(Chosen<false>),
    Mariadb(mariadb::Options),
    Forks(kernel_load::forks::Options),
    Faults(kernel_load::faults::Options),
    Syscalls(syscalls::Options),
    /// The process in which a lock is measured; this command starts it itself.
    #[command(hide = true)]
    Worker {
        lock: String,
    },
    /// A process that talks to another; this command starts it itself.
    #[command(hide = true)]
    Conversation {
        order: String,
    },
    /// The process that loads the kernel; this command starts it itself.
    #[command(hide = true)]
    Load {
        order: String,
    },
}

/// Measures, and prints what came out.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    match &options.what {
        What::Registered(chosen) => chosen.run(terminal),
        What::Mariadb(options) => mariadb::run(options, terminal),
        What::Forks(options) => kernel_load::forks::run(options, terminal),
        What::Faults(options) => kernel_load::faults::run(options, terminal),
        What::Syscalls(options) => syscalls::run(options, terminal),
        What::Conversation { order } => Ok(manycore_bench::conversation::serve(order)?),
        What::Load { order } => Ok(manycore_bench::kernel_load::serve(order)?),
        What::Worker { lock } => manycore_bench::serve_worker(lock).map_err(lost),
    }
}

fn lost(error: io::Error) -> Failure {
    Failure::failed(format!("the benchmark that this worker serves is gone: {error}"))
}

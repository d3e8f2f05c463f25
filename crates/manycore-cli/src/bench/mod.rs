//! `manycore bench`: the locks themselves, without a program around them.

mod contended;
mod length;
mod uncontended;

use std::io;

use clap::{Args, Subcommand};
use manycore_bench::worker;
use manycore_report::{Host, Measurement, Results};

use crate::failure::{Failure, Result};
use crate::terminal::{Terminal, print};

const NOTES: &str = "\
Examples:
  manycore bench lock --threads 1,2,8 --section 50ns,1us
  manycore bench uncontended --preload
";

/// Measure locks without a program around them
#[derive(Args, Debug)]
#[command(after_long_help = NOTES, disable_help_subcommand = true)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Lock(contended::Options),
    Uncontended(uncontended::Options),
    /// The process in which a lock is measured; this command starts it itself.
    #[command(hide = true)]
    Worker {
        lock: String,
    },
}

/// Measures, and prints what came out.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    match &options.what {
        What::Lock(options) => contended::run(options, terminal),
        What::Uncontended(options) => uncontended::run(options),
        What::Worker { lock } => worker::serve(lock).map_err(lost),
    }
}

/// How this command starts its workers.
fn worker_command() -> Result<worker::Command> {
    worker::Command::this_executable(["bench", "worker"]).map_err(failure)
}

fn report(
    measurements: Vec<Measurement>,
    json: bool,
    text: fn(&[Measurement]) -> String,
) -> Result<()> {
    if !json {
        return print(&format!("{}\n\n{}", Host::describe(), text(&measurements)));
    }
    let results = Results::of_this_host(measurements).to_json();
    let results =
        results.map_err(|error| Failure::failed(format!("no usable results: {error}")))?;
    print(&format!("{results}\n"))
}

fn failure(failure: manycore_bench::Failure) -> Failure {
    match failure {
        manycore_bench::Failure::Usage(text) => Failure::BadInput(text),
        manycore_bench::Failure::Failed(text) => Failure::failed(text),
    }
}

fn lost(error: io::Error) -> Failure {
    Failure::failed(format!("the benchmark that this worker serves is gone: {error}"))
}

//! `manycore bench`: the locks and sets themselves, a database under each lock, loads on the kernel's, and system calls.

mod contended;
mod goals;
mod grid;
mod kernel_load;
pub mod length;
mod mariadb;
pub mod plot;
pub mod reverse_map;
mod set;
pub mod sets;
mod slices;
mod syscalls;
mod uncontended;

use std::io;

use clap::{Args, Subcommand};
use manycore_bench::worker;
use manycore_measure::{Claim, Host, Judgement, Results};

pub use slices::Pin;

use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::{Terminal, print};

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
    Lock(contended::Options),
    Set(set::Options),
    Uncontended(uncontended::Options),
    Grid(grid::Options),
    Goals(goals::Options),
    Rmap(reverse_map::Options),
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
        What::Lock(options) => contended::run(options, terminal),
        What::Set(options) => set::run(options, terminal),
        What::Uncontended(options) => uncontended::run(options, terminal),
        What::Grid(options) => grid::run(options, terminal),
        What::Goals(options) => goals::run(options, terminal),
        What::Mariadb(options) => mariadb::run(options, terminal),
        What::Forks(options) => kernel_load::forks::run(options, terminal),
        What::Faults(options) => kernel_load::faults::run(options, terminal),
        What::Rmap(options) => reverse_map::run(options, terminal),
        What::Syscalls(options) => syscalls::run(options, terminal),
        What::Conversation { order } => manycore_bench::conversation::serve(order).map_err(failure),
        What::Load { order } => manycore_bench::kernel_load::serve(order).map_err(failure),
        What::Worker { lock } => manycore_bench::serve_worker(lock).map_err(lost),
    }
}

/// How this command starts its workers.
pub fn worker_command() -> Result<worker::Command> {
    worker::Command::this_executable(["bench", "worker"]).map_err(failure)
}

/// Prints what was measured on this host.
pub fn report(results: &Results, json: bool, text: impl FnOnce() -> String) -> Result<()> {
    print_results(results, json, || on_this_host(&text()))
}

/// A text below the name of the host.
fn on_this_host(text: &str) -> String {
    format!("{}\n\n{}\n", Host::describe(), text.trim_end())
}

/// Prints results: for machines, or as text.
pub fn print_results(results: &Results, json: bool, text: impl FnOnce() -> String) -> Result<()> {
    if !json {
        return print(&text());
    }
    let results = results.to_json();
    let results =
        results.map_err(|error| Failure::failed(format!("no usable results: {error}")))?;
    print(&format!("{results}\n"))
}

/// An error if some locks could not be measured: a line for each.
pub fn failed_locks(failures: &[String]) -> Result<()> {
    match failures {
        [] => Ok(()),
        failures => Err(Failure::failed(failures.join("; "))),
    }
}

/// An error if something that is promised was found not to be so.
pub fn failed_claims(claims: &[Claim]) -> Result<()> {
    let failed: Vec<&str> = claims
        .iter()
        .filter(|claim| claim.verdict == Judgement::Fail)
        .map(|claim| claim.id.as_str())
        .collect();
    match failed.len() {
        0 => Ok(()),
        count => Err(Failure::failed(format!(
            "{count} of {} claims failed: {}",
            claims.len(),
            failed.join(", ")
        ))),
    }
}

/// What the library says went wrong, as the command says it.
pub fn failure(failure: manycore_bench::Failure) -> Failure {
    match failure {
        manycore_bench::Failure::Usage(text) => Failure::BadInput(text),
        manycore_bench::Failure::Failed(text) => Failure::failed(text),
    }
}

fn lost(error: io::Error) -> Failure {
    Failure::failed(format!("the benchmark that this worker serves is gone: {error}"))
}

#[cfg(test)]
mod tests {
    use manycore_measure::Bound;

    use super::*;

    fn claim(id: &str, verdict: Judgement) -> Claim {
        Claim { verdict, ..Claim::open(id, "", Bound::AtLeast(0.5)) }
    }

    #[test]
    fn only_failed_claims_fail() {
        let (pass, undecided) = (claim("a", Judgement::Pass), claim("b", Judgement::Undecided));
        assert!(failed_claims(&[pass.clone(), undecided.clone()]).is_ok());
        let failed = failed_claims(&[pass, claim("c", Judgement::Fail), undecided]).unwrap_err();
        assert_eq!(failed.to_string(), "1 of 3 claims failed: c");
    }
}

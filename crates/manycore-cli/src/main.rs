//! The command `manycore`.
//!
//! A first session, on a program that knows nothing of it:
//!
//! ```console
//! $ manycore locks                                        # which locks there are
//! $ manycore run --lock futex -- ./server --port 8080     # the program, with another lock
//! $ manycore profile -- ./batch-job --threads 8           # which locks cost time, and where?
//! $ manycore compare -- ./batch-job --threads 8           # does another help, and by how much?
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | `cli` | the options |
//! | `calls` | where system calls are executed, and what became of them |
//! | the others | a command each |
//!
//! The other commands are in the crates that do their work.

mod calls;
mod cli;
mod demo;
mod diff;
mod locks;
mod manual;
mod profile;
mod report;
mod run;
#[cfg(feature = "every-command")]
mod store;

use std::error::Error;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use cli::{Cli, Command};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::Terminal;

fn main() -> ExitCode {
    die_of_broken_pipes();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match execute(&cli) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => ExitCode::from(failure.report()),
    }
}

/// Gives the exit status.
fn execute(cli: &Cli) -> Result<u8> {
    let terminal = Terminal::new(cli.global.quiet, cli.global.verbose);
    match &cli.command {
        Command::Run(options) => return run::run(options, &terminal),
        Command::Profile(options) => return profile::run(options, &terminal),
        Command::Diff(options) => diff::run(options),
        Command::Report(options) => report::run(options),
        Command::Demo(options) => demo::run(options, &terminal),
        #[cfg(feature = "every-command")]
        Command::Bench(options) => options.run(&terminal),
        #[cfg(feature = "every-command")]
        Command::Sim(options) => options.run(&terminal),
        Command::Compare(options) => manycore_compare::run(options, &terminal),
        #[cfg(feature = "every-command")]
        Command::Top(options) => manycore_top::run(options, &terminal),
        #[cfg(feature = "every-command")]
        Command::Predict(options) => manycore_bench::predict::command::run(options, &terminal),
        #[cfg(feature = "every-command")]
        Command::Figures(options) => manycore_figures::command::run(options, &terminal),
        #[cfg(feature = "every-command")]
        Command::Store(options) => store::run(options),
        Command::Locks(options) => locks::run(options),
        #[cfg(feature = "every-command")]
        Command::Machines(options) => manycore_bench::machines::run(options, &terminal),
        Command::Completions(options) => manual::completions(options, Cli::command()),
        Command::Man(options) => manual::pages(options, Cli::command()),
    }?;
    Ok(0)
}

/// Prints help and version as clap formats them, and a mistake in one line like every other error.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Nothing to be done where stdout is closed.
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
    }
    if let Some(own) = error.source().and_then(|source| source.downcast_ref::<Failure>()) {
        return ExitCode::from(Failure::BadInput(own.to_string()).report());
    }
    let text = error.to_string();
    let mut parts = text.split("\n\n").map(str::trim);
    let what = parts.next().unwrap_or_default().trim_start_matches("error: ");
    let tip =
        parts.find_map(|part| part.strip_prefix("tip: ")).and_then(|tips| tips.lines().next());
    let remedy = tip.unwrap_or("`--help` after the command shows what there is");
    ExitCode::from(Failure::bad_input(what, remedy).report())
}

/// Rust starts with SIGPIPE ignored. `manycore locks | head -1` must end like any other filter,
/// without a message.
fn die_of_broken_pipes() {
    // SAFETY: restores the disposition that the process would have had, before any other thread
    // exists.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

//! `manycore demo`: profile, compare and repair a contended program, in a minute.

mod finding;
mod report;
mod server;
mod trials;

use std::process::Stdio;

use clap::Args;
use manycore_measure::Table;

use manycore_launch::child::describe;
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;
use manycore_launch::spec::Spec;
use manycore_launch::terminal::Terminal;
use manycore_profile::record::observe;
use report::Report;
use server::Server;

const NOTES: &str = "\
Examples:
  manycore demo
  manycore demo -q | tail -1         (the path of a page for a browser)

What happens:
  A small cache server that comes with the command, under load from a client
  process, is profiled; then it runs under glibc's lock, under others and with a
  repair, in turns. Three sentences say what was found: all figures in them are
  those of this run. The report, the server and its source stay in
  ~/.cache/manycore/demo. It takes less than a minute.

Exit status:
  0   done, whatever was found
  1   the server or its load failed
  2   the preload library is missing, or there is no place for the report
";

/// Find and repair the contended lock of a bundled server, in less than a minute
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Runs of each candidate; on a busy machine there are fewer
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..=100))]
    runs: u16,
}

/// How long the server is profiled, in seconds.
const PROFILED: f64 = 3.0;

/// Shows it.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    // Missing pieces first, so that a minute's work is not lost.
    let futex = Interposition::new("futex".parse::<Spec>()?)?;
    let server = Server::unpack()?;
    let bar = terminal.progress(1);
    bar.set_message("profiling the server");
    let command = server.command(PROFILED, false);
    let quiet = |program: &mut std::process::Command| {
        program.stdin(Stdio::null()).stdout(Stdio::null());
    };
    let (profile, status) =
        observe(&command, &futex, quiet, Default::default(), &mut Inbox::to_hand_on()?, terminal)?;
    bar.finish_and_clear();
    if !status.success() {
        return Err(Failure::failed(format!("the server failed: {}", describe(status))));
    }

    let tried = trials::run(&server, options.runs.into(), &mut Inbox::open()?, terminal)?;
    let sentences = finding::sentences(&profile, &tried);
    let report = Report { profile: &profile, tried: &tried, sentences: &sentences };
    let paths = report.write(server.directory())?.map(|path| path.display().to_string());
    let comparison = report.comparison(Table::new);
    println!("{comparison}\n\n{}\n\n{}", sentences.join("\n"), paths.join("\n"));
    Ok(())
}

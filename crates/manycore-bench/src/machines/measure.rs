//! `manycore machines measure`: a model of this host.

use std::path::{Path, PathBuf};

use crate::host;
use clap::Args;
use manycore_sim::model::derive::{Burst, Observed};

use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::{Terminal, print};

const NOTES: &str = "\
Examples:
  manycore machines measure --out here.toml
  manycore machines ./here.toml
  manycore machines measure --out here.toml --latencies matrix.toml --bursts bursts.csv
  manycore machines derive --latencies matrix.toml --bursts bursts.csv

With --latencies, each pair of CPUs hands a word to and fro, and FILE gets the
matrix in the form that `machines derive` reads; what no hand-over tells is then
taken from the model that --out names. On 192 CPUs that takes some minutes.
With --bursts, 1, 2 and more cores access one line at the same moment.

Takes some seconds, and a machine that does nothing else. Each value is the 10th
percentile of many short batches, and its range goes from the fastest to the 75th:
what else the machine does can only slow a batch down. What two CPUs cannot show,
such as how reads are combined, is marked as assumed, with a range.

Exit status:
  0   measured
  1   this host cannot be measured; stderr says why
  2   bad usage, or FILE cannot be written
";

/// Measure this host, and write a model of it
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// File to write; without it, the model goes to stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the hand-over time of each pair of CPUs to this file, for `machines derive`
    #[arg(long, value_name = "FILE", requires = "out")]
    latencies: Option<PathBuf>,
    /// Write how long accesses take if several cores make them at once to this file, for `machines
    /// derive`
    #[arg(long, value_name = "FILE", requires = "out")]
    bursts: Option<PathBuf>,
}

/// Measures and writes.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    let bar = terminal.progress(8);
    let host = host::measure(|what| {
        terminal.say(format_args!("measuring {what}"));
        bar.set_message(what.to_owned());
        bar.inc(1);
    });
    bar.finish_and_clear();
    let host = host.map_err(|failure| Failure::failed(failure.to_string()))?;
    let name = options.out.as_deref().and_then(Path::file_stem).and_then(|stem| stem.to_str());
    let text = host.model(name.unwrap_or("this-host")).to_toml();
    let Some(path) = &options.out else { return print(&text) };
    write(path, &text)?;
    terminal.note(format_args!("wrote a model of this host to {}", path.display()));
    if let Some(latencies) = &options.latencies {
        write_latencies(latencies, path, &host, terminal)?;
    }
    match &options.bursts {
        Some(bursts) => write_bursts(bursts, &host, terminal),
        None => Ok(()),
    }
}

/// Measures all pairs, and writes them together with the other inputs of `machines derive`.
fn write_latencies(path: &Path, like: &Path, host: &host::Host, terminal: &Terminal) -> Result<()> {
    let matrix = host::hand_over::matrix(|cpu, count| {
        terminal.say(format_args!("measuring hand-overs of CPU {cpu} of {count}"));
    })?;
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("latencies");
    let ghz = host.model(name).machine().core.ghz;
    // A path has a slash; a name without a slash is that of a built-in model.
    let like = if like.is_absolute() { like.to_owned() } else { Path::new(".").join(like) };
    let text = Observed::text(name, &like.display().to_string(), ghz, &matrix);
    write(path, &text)?;
    terminal.note(format_args!("wrote the hand-overs of all pairs to {}", path.display()));
    Ok(())
}

/// Measures bursts with more and more cores, and writes their table.
fn write_bursts(path: &Path, host: &host::Host, terminal: &Terminal) -> Result<()> {
    let ghz = host.model("this-host").machine().core.ghz;
    let bursts = host::burst::table(&host.topology, ghz, |cores| {
        terminal.say(format_args!("measuring bursts of {cores} cores"));
    })?;
    write(path, &Burst::text(&bursts))?;
    terminal.note(format_args!("wrote {} bursts to {}", bursts.len(), path.display()));
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|error| {
        let fault = format!("cannot write '{}': {error}", path.display());
        Failure::bad_input(fault, "name a file in a directory that you may write to")
    })
}

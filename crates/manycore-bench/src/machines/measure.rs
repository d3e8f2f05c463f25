//! `manycore machines measure`: a model of this host.

use std::path::{Path, PathBuf};

use crate::host;
use clap::Args;

use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::{Terminal, print};

const NOTES: &str = "\
Examples:
  manycore machines measure --out here.toml
  manycore machines ./here.toml

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
    std::fs::write(path, text).map_err(|error| {
        let fault = format!("cannot write '{}': {error}", path.display());
        Failure::bad_input(fault, "name a file in a directory that you may write to")
    })?;
    terminal.note(format_args!("wrote a model of this host to {}", path.display()));
    Ok(())
}

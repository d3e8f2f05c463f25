//! `manycore machines derive`: a model out of hand-overs between cores and bursts on lines.

use std::path::{Path, PathBuf};

use clap::Args;
use manycore_sim::model::derive::{Burst, Observed};

use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::{Terminal, print};

const NOTES: &str = "\
Examples:
  manycore machines derive --latencies server.toml --out server-like.toml
  manycore machines derive --latencies matrix.csv --ghz 2.4 --like epyc-2x96
  manycore machines derive --latencies server.toml --bursts server.csv

The latencies are a description as those in figures/measured/machines, which
`manycore machines measure --latencies` writes as well; or a file that ends in
.csv, with a row of nanoseconds for each CPU, as tools print it that measure how
long two CPUs take to hand a word to each other, one way. Groups of cores and
distances are read off the times. With a .csv, --ghz and --like have to be there.

Bursts are lines of `accesses,cores,cycles`: how long an access takes if this
number of cores make it at the same moment. Accesses are read-one, read-own,
read-written, write-read, write-one and write-own; add-without-end is an
addition while all cores make one after the other.

Each constant of the model says where it comes from. What was not measured is as
in the model of a similar machine, and is marked as assumed.

Exit status:
  0   derived
  2   a file cannot be read or is none of these; stderr says why
";

/// Derive a model from latencies between cores and bursts on lines
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// The time that two CPUs take to hand a word to each other: a description, or a matrix that
    /// ends in .csv
    #[arg(long, value_name = "FILE")]
    latencies: PathBuf,
    /// What accesses take if many cores make them at once
    #[arg(long, value_name = "FILE")]
    bursts: Option<PathBuf>,
    /// For a matrix: the frequency of a core
    #[arg(long, value_name = "GHZ")]
    ghz: Option<f64>,
    /// For a matrix: the model of a similar machine, for constants that were not measured
    #[arg(long, value_name = "NAME")]
    like: Option<String>,
    /// File to write; without it, the model goes to stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Reads, derives and writes.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    let refused = |problem: manycore_sim::model::Problem| Failure::BadInput(problem.to_string());
    let observed = options.observed()?;
    let bursts = match &options.bursts {
        None => Vec::new(),
        Some(path) => Burst::table(&path.display().to_string(), &read(path)?).map_err(refused)?,
    };
    let model = observed.model(&bursts).map_err(refused)?;
    let Some(path) = &options.out else { return print(&model.to_toml()) };
    std::fs::write(path, model.to_toml()).map_err(|error| {
        let fault = format!("cannot write '{}': {error}", path.display());
        Failure::bad_input(fault, "name a file in a directory that you may write to")
    })?;
    terminal.note(format_args!("wrote a model of {} to {}", model.shape(), path.display()));
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        let fault = format!("cannot read '{}': {error}", path.display());
        Failure::bad_input(fault, "name a file that is there")
    })
}

impl Options {
    fn observed(&self) -> Result<Observed> {
        let file = self.latencies.display().to_string();
        let text = read(&self.latencies)?;
        let is_matrix = self.latencies.extension().is_some_and(|ending| ending == "csv");
        let observed = match (is_matrix, self.ghz, &self.like) {
            (false, None, None) => Observed::parse(&file, &text),
            (true, Some(ghz), Some(like)) => {
                let stem = self.latencies.file_stem().unwrap_or_default().to_string_lossy();
                Observed::of_matrix(&file, &text, &stem, like, ghz)
            }
            (false, ..) => {
                let fault = format!("'{file}' says by itself what --ghz and --like say");
                return Err(Failure::bad_input(fault, "leave them out"));
            }
            (true, ..) => {
                let fault = format!("'{file}' is a matrix, which says nothing else");
                return Err(Failure::bad_input(fault, "add --ghz and --like"));
            }
        };
        observed.map_err(|problem| Failure::BadInput(problem.to_string()))
    }
}

//! `manycore diff`: two profiles, lock by lock.

use std::path::PathBuf;

use clap::Args;
use manycore_measure::Table;
use manycore_profile::profile::read;
use manycore_profile::render::{diff, diff_table};

use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::print;

const NOTES: &str = "\
Examples:
  manycore diff before.json after.json
  manycore diff --top 30 before.json after.json
  manycore diff --json before.json after.json | jq '.locks[0]'

Output:
  Each lock with what was before, what is after, and how many times as much that is;
  most changed first.

  wait        threads that waited for it, on average: seconds waited a second
  acquired    acquisitions a second
  contended   share of the acquisitions that had to wait
  hold        the mean time that it was held

  Locks are the same if name and kind are; or, after a rebuild, without offset and
  line, if that leaves no doubt. Runs may differ in length, so all are rates.

Exit status:
  0   done, whatever the difference is
  2   a file is no profile: the line on stderr says which, and what to do
";

/// Compare two profiles lock by lock: which waits have grown or shrunk, and which locks are new
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// What `manycore profile --json` wrote before the change
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// What it wrote after
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Write all of it as JSON to stdout, instead of the table
    #[arg(long)]
    json: bool,
    /// Locks in the table
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,
}

/// Compares them.
pub fn run(options: &Options) -> Result<()> {
    let diff = diff::diff(&read::from_file(&options.before)?, &read::from_file(&options.after)?);
    if options.json {
        let text = serde_json::to_string_pretty(&diff)
            .map_err(|error| Failure::failed(format!("cannot write the difference: {error}")))?;
        return print(&(text + "\n"));
    }
    print(&diff_table::text(&diff, options.top.into(), Table::new))
}

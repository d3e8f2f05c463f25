//! `manycore report`: a profile from its file, as a table or in another form.

use std::path::PathBuf;

use clap::Args;
use manycore_profile::profile::read;

use crate::profile::output::{self, Forms};
use manycore_launch::failure::Result;
use manycore_launch::terminal::print;
use manycore_profile::render::{Sort, View, table};

const NOTES: &str = "\
Examples:
  manycore report prof.json
  manycore report prof.json --html prof.html      (then open prof.html in a browser)
  manycore report prof.json --sort hold --top 30
  manycore report prof.json --folded - | flamegraph.pl --countname=ns >waits.svg
  manycore report prof.json --perfetto prof.trace (for ui.perfetto.dev)
  manycore report prof.json --pprof prof.pb.gz    (for go tool pprof, speedscope)
  manycore report prof.json --firefox waits.json  (for profiler.firefox.com)

Output:
  The table that `manycore profile` showed, on stdout; with --html, --folded or one
  of the others those instead. '-' is stdout.

Exit status:
  0   done
  2   FILE is no profile, or is cut short, or of another version: the line on stderr
      says what is wrong and what to do
";

/// Show a profile again: the table, a page for a browser, a flame graph's stacks, a trace
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// What `manycore profile --json` has written
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Rows of the tables
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,
    /// What comes first in the tables
    #[arg(long, value_parser = output::sort(), default_value = "wait")]
    sort: Sort,
    #[command(flatten)]
    forms: Forms,
}

/// Shows it.
pub fn run(options: &Options) -> Result<()> {
    let profile = read::from_file(&options.file)?;
    let forms = options.forms.open(None)?;
    if forms.is_empty() {
        let view = View::for_stdout(options.top.into(), options.sort);
        return print(&table::whole(&profile, view));
    }
    forms.write(&profile)
}

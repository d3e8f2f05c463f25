//! `manycore bench fs`: threads that use KhronOS' file system.

use clap::Args;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;
use manycore_measure::Results;

use super::flags::FileSystemOptions;
use super::render;
use crate::front::{Benchmark, Outcome, SliceOptions};
use crate::fs;
use crate::run_records::RunRecords;

const NOTES: &str = "\
Examples:
  manycore bench fs
  manycore bench fs --workload mwcm,mwum,mwrm --threads 1,2 --sync dirlock,rcu,mvrlu
  manycore bench fs --workload storm --threads 2

Mechanisms:
  dirlock  a lock for each directory; readers in an RCU section, as Linux has it
  lock     a lock for each chain of a directory, which readers take, too
  rcu      the same lock for writers; readers in an RCU section
  rlu      transactions of RLU
  mvrlu    transactions of MV-RLU

Workloads, named as in FxMark; what is made is removed again:
  mwcl, mwcm        files are made, in a directory of the thread's or in one of all
  mwul, mwum        files are removed
  mwrl, mwrm        files are renamed, mwrm to a directory of all and back
  mrpl, mrpm, mrph  paths are looked up: of the thread's, of 64 files, of one
  mrdl, mrdm        directories are listed
  drbl, drbm, drbh  pages are read: of a file of the thread's, of one of all, the same
  dwol, dwom        pages are written over
  storm             directories are moved between two directories
  storm-files       files are moved between them

Columns:
  operations      operations a second
  retries         how often calls had to begin anew, for each operation
  p50 ... p99.9   the time that an operation takes
  max/min         operations of the luckiest thread over those of the least lucky
  B/key           memory of a name, in a file system that has been filled and not used
  garbage         memory beyond that at the end

Exit status:
  0   measured
  1   a file system hung, crashed, or names and links do not agree; stderr says which.
      The others are printed
  2   bad usage
";

/// Threads use a file system in memory: throughput, latency, conflicts
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    #[command(flatten)]
    file_systems: FileSystemOptions,
    #[command(flatten)]
    slices: SliceOptions,
    /// Operations of each thread in a slice, whose duration is then not limited
    #[arg(long, value_name = "N", conflicts_with = "slice")]
    operations: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Benchmark for Options {
    const NAME: &'static str = "fs";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let options = fs::Options::of_flags(
            self.file_systems.workload(),
            &[],
            &self.slices,
            self.operations,
            terminal,
        )?;
        let RunRecords { measurements, failures } = fs::run(&options)?;
        let results = Results::of_this_host(measurements);
        let text = render(&results.measurements);
        Ok(Outcome { results, text, figure: None, failures })
    }

    fn json(&self) -> bool {
        self.json
    }
}

//! `manycore sim fs`: threads that use KhronOS' file system on a simulated machine.

use clap::Args;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;
use manycore_measure::Results;

use super::flags::FileSystemOptions;
use super::render;
use crate::front::{Benchmark, Outcome, SimulatorOptions};
use crate::run_records::RunRecords;
use crate::structure::{MachineFlags, RunFlags};

const NOTES: &str = "\
Examples:
  manycore sim fs --machine xeon-e5-2697-2x18x2 --threads 1,18,36,72 --workload mwcm,mwum,mwrm
  manycore sim fs --machine xeon-e5-2697-2x18x2 --threads 72 --workload storm

Workload:
  That of `manycore bench fs`, with the same options and the same sources. Times are
  simulated; apart from its accesses an operation costs 5 ns, which is assumed.

Exit status:
  0   simulated
  1   a file system got stuck, or names and links do not agree; stderr says which. The
      others are printed
  2   bad usage
";

/// Threads use a file system on a simulated machine: throughput, latency, conflicts
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    #[command(flatten)]
    machine: MachineFlags,
    #[command(flatten)]
    file_systems: FileSystemOptions,
    #[command(flatten)]
    run: RunFlags,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pool: SimulatorOptions,
}

impl Benchmark for Options {
    const NAME: &'static str = "fs";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let workload = self.file_systems.workload();
        let (_, RunRecords { measurements, failures }) =
            self.machine.simulate(&self.run, workload, &self.pool, terminal)?;
        let results = Results::new(measurements);
        let text = render(&results.measurements);
        Ok(Outcome { results, text, figure: None, failures })
    }

    fn json(&self) -> bool {
        self.json
    }
}

//! `manycore sim set`: threads that use a set on a simulated machine.

use crate::set::render;
use clap::Args;
use manycore_measure::Results;

use super::flags::SetOptions;
use crate::front::{Benchmark, Outcome, SimulatorOptions};
use crate::run_records::RunRecords;
use crate::structure::{MachineFlags, RunFlags};
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore sim set --machine xeon-8180-8x28x2 --threads 56,112,224,448 --update 20
  manycore sim set --machine xeon-4x6 --structure list --initial 1000 --sync lock:mcs,lock:cna

Workload:
  That of `manycore bench set`, with the same options. Times are simulated; beside
  its accesses to the set, an operation costs 5 ns, which is assumed. Where there
  is a CPU for every thread, waiters of queue locks never sleep.

Exit status:
  0   simulated
  1   a set got stuck or lost a key; stderr says which. The others are printed
  2   bad usage
";

/// Threads use a set on a simulated machine: throughput, latency, causes
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    #[command(flatten)]
    machine: MachineFlags,
    #[command(flatten)]
    sets: SetOptions,
    #[command(flatten)]
    run: RunFlags,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pool: SimulatorOptions,
}

impl Benchmark for Options {
    const NAME: &'static str = "set";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let workload = self.sets.workload();
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

//! `manycore sim index`: threads that use an index on a simulated machine.

use clap::Args;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;
use manycore_measure::Results;

use super::flags::IndexOptions;
use super::own::simulated::CONTENDERS;
use super::picture::figure;
use super::render;
use crate::front::{Benchmark, Outcome, PlotOptions, SimulatorOptions};
use crate::run_records::RunRecords;
use crate::structure::{MachineFlags, RunFlags};

const NOTES: &str = "\
Examples:
  manycore sim index --machine xeon-8180-8x28x2 --threads 56,448 --workload upsert-5,upsert-20
  manycore sim index --machine xeon-8180-8x28x2 --structure hash --sync mvrlu-growing,rcu-mcs
  manycore sim index --machine epyc-2x96 --workload ycsb-e --zipf 0 --plot index.svg

Workload:
  That of `manycore bench index`, with the same options. Times are simulated; beside
  its accesses to the index, an operation costs 5 ns and an entry of a scan 1 ns, which
  is assumed. Where there is a CPU for every thread, waiters of queue locks never sleep.

Exit status:
  0   simulated
  1   an index got stuck or lost a record; stderr says which. The others are printed
  2   bad usage
";

/// Threads use an index on a simulated machine: throughput, latency, causes
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    #[command(flatten)]
    machine: MachineFlags,
    #[command(flatten)]
    indexes: IndexOptions,
    #[command(flatten)]
    run: RunFlags,
    #[command(flatten)]
    plot: PlotOptions,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pool: SimulatorOptions,
}

impl Benchmark for Options {
    const NAME: &'static str = "index";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let workload = self.indexes.workload(CONTENDERS);
        let (machine, RunRecords { measurements, failures }) =
            self.machine.simulate(&self.run, workload, &self.pool, terminal)?;
        let title = format!("manycore sim index, {} (simulated)", machine);
        let figure = Some(figure(title, &measurements));
        let results = Results::new(measurements);
        let text = render(&results.measurements);
        Ok(Outcome { results, text, figure, failures })
    }

    fn json(&self) -> bool {
        self.json
    }

    fn plot(&self) -> Option<&PlotOptions> {
        Some(&self.plot)
    }
}

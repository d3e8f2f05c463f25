//! `manycore sim txn`: threads that run transactions on a simulated machine.

use clap::Args;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;
use manycore_measure::Results;

use super::flags::TransactionOptions;
use super::own::simulated::CONTENDERS;
use super::render;
use crate::front::{Benchmark, Outcome, SimulatorOptions};
use crate::run_records::RunRecords;
use crate::structure::{MachineFlags, RunFlags};

const NOTES: &str = "\
Examples:
  manycore sim txn --machine xeon-8180-8x28x2 --threads 56,448 --workload ycsb16
  manycore sim txn --machine epyc-2x96 --threads 96,192 --workload tpcc --warehouses 96 \\
      --items 1000 --customers 30

Workload:
  That of `manycore bench txn`, with the same options. Times are simulated; beside its
  accesses to rows, a transaction costs 5 ns, which is assumed. Where there is a CPU for
  every thread, waiters of queue locks never sleep. Every row is put in by a simulated
  insertion: the databases of tpcc have to be small.

Exit status:
  0   simulated
  1   a database got stuck, lost something or showed half of a transaction; stderr says
      which. The others are printed
  2   bad usage
";

/// Threads run transactions on a simulated machine: throughput, latency, conflicts
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    #[command(flatten)]
    machine: MachineFlags,
    #[command(flatten)]
    databases: TransactionOptions,
    #[command(flatten)]
    run: RunFlags,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pool: SimulatorOptions,
}

impl Benchmark for Options {
    const NAME: &'static str = "txn";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let workload = self.databases.workload(CONTENDERS);
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

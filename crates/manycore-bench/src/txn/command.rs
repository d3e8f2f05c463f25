//! `manycore bench txn`: threads that run transactions.

use clap::Args;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;
use manycore_measure::Results;

use super::flags::TransactionOptions;
use super::own::native::CONTENDERS;
use super::render;
use crate::front::{Benchmark, Outcome, SliceOptions};
use crate::run_records::RunRecords;
use crate::txn;

const NOTES: &str = "\
Examples:
  manycore bench txn
  manycore bench txn --workload ycsb16 --initial 1000000 --against rwlock,shards
  manycore bench txn --workload tpcc --warehouses 2 --sync mvrlu --against shards

Mechanisms:
  mvrlu               the library's B+trees in a space, under snapshot isolation
  mvrlu-serializable  the same; a transaction locks what it has read
  rlu                 the same trees by RLU
  one-lock            those of mvrlu, one transaction at a time

Databases of others:
  rwlock  the standard library's trees under one lock
  shards  64 of these, whose locks a transaction takes in their order, as it knows
          before it begins which ones it needs

Workloads:
  ycsb16  a transaction makes 16 requests, of which --update percent add to a record
  tpcc    orders 47 %, payments 45, the status of an order 4, the level of the stock 4,
          as TPC-C has them; beside them one audit in 100: whether what a warehouse and
          its districts were paid, and orders and their lines, agree at one moment

Columns:
  operations      transactions a second
  aborts          how often a transaction was run again
  p50 ... p99.9   the time that a transaction takes
  max/min         transactions of the luckiest thread over those of the least lucky
  B/key           memory of a row, in a database that has been filled and not used
  garbage         memory beyond that at the end: rows that were added, what waits to be
                  freed, and logs

Exit status:
  0   measured
  1   a database hung, crashed, lost something or showed half of a transaction; stderr
      says which. The others are printed
  2   bad usage
";

/// Threads run transactions on a database: throughput, latency, conflicts
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    #[command(flatten)]
    databases: TransactionOptions,
    /// Databases of others to measure beside: rwlock, shards
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    against: Vec<String>,
    #[command(flatten)]
    slices: SliceOptions,
    /// Transactions of each thread in a slice, whose duration is then not limited
    #[arg(long, value_name = "N", conflicts_with = "slice")]
    operations: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Benchmark for Options {
    const NAME: &'static str = "txn";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let options = txn::Options::of_flags(
            self.databases.workload(CONTENDERS),
            &self.against,
            &self.slices,
            self.operations,
            terminal,
        )?;
        let RunRecords { measurements, failures } = txn::run(&options)?;
        let results = Results::of_this_host(measurements);
        let text = render(&results.measurements);
        Ok(Outcome { results, text, figure: None, failures })
    }

    fn json(&self) -> bool {
        self.json
    }
}

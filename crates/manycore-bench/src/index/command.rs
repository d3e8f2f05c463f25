//! `manycore bench index`: threads that use an index.

use clap::Args;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;
use manycore_measure::{Host, Results};

use super::flags::IndexOptions;
use super::own::native::CONTENDERS;
use super::picture::figure;
use super::render;
use crate::front::{Benchmark, Outcome, PlotOptions, SliceOptions};
use crate::index;
use crate::run_records::RunRecords;

const NOTES: &str = "\
Examples:
  manycore bench index
  manycore bench index --workload ycsb-a,ycsb-e --against scc-tree,ferntree,rwlock
  manycore bench index --structure hash --workload ycsb-f --against papaya,dashmap
  manycore bench index --initial 1000000 --key string --value 100 --plot index.html

Mechanisms:
  btree  mvrlu, rlu
  art    mvrlu, rlu: the bytes of keys, of which many may be the same
  hash   mvrlu-growing, map; of numbers also plain, rcu, rcu-mcs
  bst    mvrlu, of numbers

Indexes of others:
  btree  scc-tree, skiplist, ferntree, congee (of numbers), rwlock, shards
  art    congee (of numbers)
  hash   papaya, scc, dashmap

Workloads:
  ycsb-a    50 % reads, 50 % upserts           ycsb-b    95 % reads, 5 % upserts
  ycsb-c    reads                              ycsb-d    95 % reads of the latest, 5 % inserts
  ycsb-e    95 % scans of 1 to 100, 5 % inserts
  ycsb-f    50 % reads, 50 % reads and writes in one step
  upsert-N  N percent upserts, the others read
  Each mechanism runs in processes of its own, in short slices of drawn order; the
  ratio to the slice of the first mechanism beside it decides.

Columns:
  entries         entries a second that scans have read
  p50 ... p99.9   the time that an operation takes
  max/min         operations of the luckiest thread over those of the least lucky
  B/key           memory of a record, in an index that has been filled and not used
  garbage         memory beyond that at the end: what waits to be freed, and logs

Exit status:
  0   measured
  1   an index hung, crashed or lost a record; stderr says which. The others are printed
  2   bad usage
";

/// Threads use an index as YCSB does: throughput, latency, scans
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    #[command(flatten)]
    indexes: IndexOptions,
    /// Indexes of others to measure as well, such as ferntree or dashmap
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    against: Vec<String>,
    #[command(flatten)]
    slices: SliceOptions,
    /// Operations of each thread in a slice, whose duration is then not limited
    #[arg(long, value_name = "N", conflicts_with = "slice")]
    operations: Option<u64>,
    #[command(flatten)]
    plot: PlotOptions,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Benchmark for Options {
    const NAME: &'static str = "index";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let options = index::Options::of_flags(
            self.indexes.workload(CONTENDERS),
            &self.against,
            &self.slices,
            self.operations,
            terminal,
        )?;
        let RunRecords { measurements, failures } = index::run(&options)?;
        let title = format!("manycore bench index, {}", Host::describe());
        let figure = Some(figure(title, &measurements));
        let results = Results::of_this_host(measurements);
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

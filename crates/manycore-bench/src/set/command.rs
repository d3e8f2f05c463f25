//! `manycore bench set`: threads that use a set.

use crate::set;
use crate::worker::Command;
use clap::Args;
use manycore_measure::Results;

use super::flags::SetOptions;
use crate::front::{Benchmark, Outcome, SliceOptions};
use crate::run_records::RunRecords;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore bench set
  manycore bench set --structure list --initial 1000 --update 2,20,80 --threads 1,2,8
  manycore bench set --sync lock:adaptive,lock:mcs,flat-combining --zipf 1 --json
  manycore bench set --sync mvrlu-growing --against papaya,scc,dashmap --initial 100000

Mechanisms:
  lock:NAME with a name of `manycore locks`, flat-combining, rcu, mvrlu, rlu, rlu-ordo
  and rlu-defer; for a list or a hash table also rcu-qsbr; lazy and harris for a list;
  mvrlu-growing and rlu-growing for a hash table.

Sets of others:
  hash   papaya, scc, scc-index, dashmap, parking_lot-mutex, parking_lot-rwlock,
         crossbeam-epoch; urcu-memb, urcu-qsbr, urcu-lfht, ck-epoch, ck-ht
  list   crossbeam-harris, crossbeam-epoch, scc-tree, crossbeam-skiplist;
         urcu-memb, urcu-qsbr, ck-epoch
  bst    scc-tree, crossbeam-skiplist, parking_lot-mutex, parking_lot-rwlock
  Those of C libraries, urcu-* and ck-*, need the program manycore-bench-peers.

Workload:
  A set that begins with --initial of the keys below --range. Each thread looks
  keys up; --update percent of its operations insert or remove one, half and half.
  Each mechanism runs in processes of its own, in short slices of drawn order; the
  ratio to the slice of the first mechanism beside it decides.

Columns:
  p50 ... p99.9   the time that an operation takes
  max/min         operations of the luckiest thread over those of the least lucky
  B/key           memory of a key, in a set that has been filled and not used
  garbage         memory beyond that at the end: what waits to be freed, and logs

Exit status:
  0   measured
  1   a set hung, crashed or lost a key; stderr says which. The others are printed
  2   bad usage
";

/// Threads use a set: throughput, latency, memory
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    #[command(flatten)]
    sets: SetOptions,
    /// Sets of others to measure as well, such as papaya or crossbeam-epoch
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    against: Vec<String>,
    #[command(flatten)]
    slices: SliceOptions,
    /// Operations of each thread in a slice, which then takes as long as it takes
    #[arg(long, value_name = "N", conflicts_with = "slice")]
    operations: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Benchmark for Options {
    const NAME: &'static str = "set";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let RunRecords { measurements, failures } = set::run(&set::Options {
            foreign: foreign_worker(),
            ..set::Options::of_flags(
                self.sets.workload(),
                &self.against,
                &self.slices,
                self.operations,
                terminal,
            )?
        })?;
        let results = Results::of_this_host(measurements);
        let text = set::render(&results.measurements);
        Ok(Outcome { results, text, figure: None, failures })
    }

    fn json(&self) -> bool {
        self.json
    }
}

/// The command that starts the worker program with the sets of C libraries. That program is built
/// into the directory of this one; `None` if it was not built.
pub fn foreign_worker() -> Option<Command> {
    let program = std::env::current_exe().ok()?.with_file_name("manycore-bench-peers");
    program.is_file().then(|| Command { program, arguments: Vec::new() })
}

//! `manycore bench rmap`: threads that update trees of intervals.

use std::time::Duration;

use crate::rmap::{self, Load, Shape};
use crate::set::Popularity;
use clap::Args;
use humantime::parse_duration;
use manycore_measure::Results;

use crate::front::{Benchmark, Outcome, worker_command};
use crate::run_records::RunRecords;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore bench rmap
  manycore bench rmap --threads 8 --update 50,100 --sync ldu,flat-combining,lock:mcs
  manycore bench rmap --objects reused --trees 16 --json
  manycore bench rmap --trees 100 --zipf 1 --operations 20000 --update 90
  manycore bench rmap --shape queue --update 95 --sync ordered,take-all,seg-queue

Mechanisms:
  ldu, ldu-per-core, ldu-forest, oplog, flat-combining, harris, and lock:NAME with
  any lock of `manycore locks`. lock:adaptive is the base line. ldu-logged and
  ldu-per-core-logged put updates off however often there are reads, as published;
  ldu-settled, ldu-settled-per-cpu and ldu-combined are LDU as Linux can have it.
  --shape queue   ordered, ordered-relaxed, ordered-counter, take-all, lock:NAME,
                  and seg-queue of the crate crossbeam-queue (not simulated)
  --shape stack   ordered, ordered-relaxed, ordered-counter, treiber, lock:NAME

Workload:
  As processes do that fork and end, threads insert and remove intervals of their
  own in trees that they share. The other operations ask which intervals overlap a
  number; a mechanism that puts work off does it then, or after --tend.
  A queue or a stack begins empty. An update adds an item; if objects are reused,
  every other one takes it back. The other operations take out up to 64 items.

  Each mechanism runs in processes of its own, in drawn order in every round; at the
  end of each, the trees must have what was not taken back.

Columns:
  p50 time ... max   how long an operation takes
  put off            the most updates of a tree that waited at a time
  memory             beyond that of the filled trees, at the end: the intervals of
                     the threads, updates that wait, logs

Exit status:
  0   measured
  1   a mechanism hung, crashed or lost an update; stderr says which
  2   bad usage
";

/// Threads update trees of intervals which few read
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    #[command(flatten)]
    workload: Workload,
    /// Time to measure each mechanism in a round
    #[arg(long, value_name = "TIME", default_value = "30ms", value_parser = parse_duration, conflicts_with = "operations")]
    duration: Duration,
    /// Rounds, in each of which every mechanism has its turn
    #[arg(long, value_name = "N", default_value_t = 31, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Length of what is between two operations
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = parse_duration)]
    outside: Duration,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What threads do, on whatever machine.
#[derive(Args, Debug)]
pub struct Workload {
    /// What threads share
    #[arg(long, value_enum, default_value = "trees")]
    shape: What,
    /// Mechanisms [default: of trees ldu,ldu-per-core,ldu-forest,oplog,flat-combining; else
    /// ordered,ordered-relaxed]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    sync: Vec<String>,
    /// Numbers of threads
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,4,8")]
    threads: Vec<u32>,
    /// Shares of operations that update, in percent
    #[arg(long, value_name = "PERCENT,..", value_delimiter = ',', default_value = "100")]
    update: Vec<f64>,
    /// Number of trees
    #[arg(long, value_name = "N", default_value_t = 1)]
    trees: u32,
    /// The k-th most popular tree is k^S times as rare as the first [default: all alike]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    zipf: Option<f64>,
    /// Intervals of each tree that stay there
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    initial: u32,
    /// Intervals that each thread has at a time
    #[arg(long, value_name = "N", default_value_t = 16)]
    held: u32,
    /// The inserted intervals: new ones each time, or the same again and again
    #[arg(long, value_enum, default_value = "fresh")]
    objects: Objects,
    /// After this long without a read, an update applies the deferred ones
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = parse_duration)]
    tend: Duration,
    /// Operations of each thread, whose total time is then not limited
    #[arg(long, value_name = "N")]
    operations: Option<u64>,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// What threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Trees of intervals
    Trees,
    /// Queues
    Queue,
    /// Stacks
    Stack,
}

/// What is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Objects {
    /// New intervals each time
    Fresh,
    /// The same again and again
    Reused,
}

impl Workload {
    /// The settings in the benchmark's terms, for the given time.
    pub fn settings(
        &self,
        outside: Duration,
        duration: Duration,
        terminal: &Terminal,
    ) -> rmap::Options {
        let shape = match self.shape {
            What::Trees => Shape::Trees,
            What::Queue => Shape::Queue,
            What::Stack => Shape::Stack,
        };
        let usual = rmap::Options::of(shape);
        rmap::Options {
            syncs: if self.sync.is_empty() { usual.syncs.clone() } else { self.sync.clone() },
            threads: self.threads.clone(),
            updates: self.update.clone(),
            load: Load {
                shape,
                trees: self.trees,
                initial: self.initial,
                held: self.held,
                reuse: self.objects == Objects::Reused,
                outside_ns: outside.as_nanos() as f64,
                tend: self.tend,
                popularity: self.zipf.map_or(Popularity::Uniform, Popularity::Zipf),
                operations: self.operations,
                seed: self.seed,
            },
            duration,
            progress: terminal.shows_progress(),
            ..usual
        }
    }
}

impl Benchmark for Options {
    const NAME: &'static str = "rmap";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let settings = rmap::Options {
            rounds: self.rounds,
            ..self.workload.settings(self.outside, self.duration, terminal)
        };
        let RunRecords { measurements, failures } = rmap::run(&settings, &worker_command()?)?;
        let results = Results::of_this_host(measurements);
        let text = rmap::render(&results.measurements);
        Ok(Outcome { results, text, figure: None, failures })
    }

    fn json(&self) -> bool {
        self.json
    }
}

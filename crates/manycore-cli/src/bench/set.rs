//! `manycore bench set`: threads that use a set.

use std::time::Duration;

use clap::Args;
use humantime::parse_duration;
use manycore_bench::set;
use manycore_report::Results;

use super::sets::SetOptions;
use super::{Pin, failed_locks, failure, report, worker_command};
use crate::failure::Result;
use crate::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore bench set
  manycore bench set --structure list --initial 1000 --update 2,20,80 --threads 1,2,8
  manycore bench set --sync lock:adaptive,lock:mcs,flat-combining --zipf 1 --json

Mechanisms:
  lock:NAME with a name of `manycore locks`, flat-combining, and for a list or a hash
  table rcu and mvrlu; harris for a list.

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
    /// Time to measure each mechanism at each point, in slices
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    duration: Duration,
    /// Time for everything, instead of --duration
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "duration")]
    budget: Option<Duration>,
    /// Length of a slice; longer where there are many threads to a CPU
    #[arg(long, value_name = "TIME", default_value = "30ms", value_parser = parse_duration)]
    slice: Duration,
    /// Operations of each thread in a slice, which then takes as long as it takes
    #[arg(long, value_name = "N", conflicts_with = "slice")]
    operations: Option<u64>,
    /// CPUs of the threads
    #[arg(long, value_enum, default_value = "auto")]
    pin: Pin,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Measures, and prints what came out.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    let found = set::run(&options.settings(terminal)?).map_err(failure)?;
    let results = Results::of_this_host(found.measurements);
    report(&results, options.json, || set::render(&results.measurements))?;
    failed_locks(&found.failures)
}

impl Options {
    fn settings(&self, terminal: &Terminal) -> Result<set::Options> {
        let slices = self.duration.as_secs_f64() / self.slice.as_secs_f64().max(1e-9);
        Ok(set::Options {
            workload: self.sets.workload(),
            slice: self.slice,
            operations: self.operations,
            rounds: match self.budget {
                Some(budget) => set::Rounds::Within(budget),
                None => set::Rounds::Count(slices.ceil() as u32),
            },
            pinning: self.pin.pinning(),
            progress: terminal.shows_progress(),
            ..set::Options::new(worker_command()?)
        })
    }
}

//! `manycore bench lock`: threads that contend for locks.

use crate::lock;
use clap::Args;
use manycore_measure::Results;

use super::flags::PointOptions;
use crate::front::{Benchmark, Outcome, SliceOptions, worker_command};
use crate::run_records::RunRecords;
use manycore_launch::failure::Result;
use manycore_launch::preload::Library;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore bench lock
  manycore bench lock --threads 1,8,64 --section 50ns,20us --lock adaptive,mcs,std
  manycore bench lock --reads 90 --section about:1us --json > readers.json
  manycore bench lock --preload --lock futex --duration 5s

Locks:
  Those of `manycore locks`; with them glibc, which is the base line, and its
  peers: glibc-adaptive, parking_lot, std. With --reads, reader-writer locks.

Workload:
  Each thread takes a lock, works for the length of a section, releases it, works
  outside, and again. A section moves one cache line, by which the lock is checked,
  or as many as --data says, before it works for its length. Each lock runs in processes of its own, in short slices of
  drawn order; the ratio to glibc's slice beside it decides.

Columns:
  p50 wait ... max   the time from asking for a lock to having it
  max/min            sections of the luckiest thread over those of the least lucky

Exit status:
  0   measured
  1   a lock hung or crashed; stderr says which. The others are printed
  2   bad usage
";

/// Threads contend for locks: throughput, waits, fairness
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Locks to measure [default: all]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    lock: Vec<String>,
    #[command(flatten)]
    points: PointOptions,
    /// Measure also through the preload library
    #[arg(long)]
    preload: bool,
    #[command(flatten)]
    slices: SliceOptions,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Benchmark for Options {
    const NAME: &'static str = "lock";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let RunRecords { measurements, failures } = lock::run(&self.settings(terminal)?)?;
        let results = Results::of_this_host(measurements);
        let text = lock::render(&results.measurements);
        Ok(Outcome { results, text, figure: None, failures })
    }

    fn json(&self) -> bool {
        self.json
    }
}

impl Options {
    fn settings(&self, terminal: &Terminal) -> Result<lock::Options> {
        Ok(lock::Options {
            locks: self.lock.clone(),
            threads: self.points.threads.clone(),
            lock_count: self.points.locks,
            sections: self.points.section.clone(),
            outside: self.points.outside,
            reads: self.points.reads,
            data: self.points.data,
            preload: self.preload.then(Library::of_locks).transpose()?.map(Library::into_path),
            slice: self.slices.slice,
            rounds: self.slices.rounds(),
            pinning: self.slices.pinning(),
            seed: self.seed,
            progress: terminal.shows_progress(),
            ..lock::Options::new(worker_command()?)
        })
    }
}

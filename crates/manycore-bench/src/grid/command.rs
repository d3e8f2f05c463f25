//! `manycore bench grid`: what is promised about the locks.

use std::time::Duration;

use crate::grid::{self, Effort};
use crate::lock;
use clap::Args;
use humantime::parse_duration;
use manycore_measure::Results;

use crate::front::{Benchmark, Outcome, worker_command};
use manycore_launch::failure::Result;
use manycore_launch::preload::Library;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore bench grid --quick
  manycore bench grid --preload --budget 1h --json > grid.json

Grid:
  1 to 64 threads, sections of 50 ns, 1 us and 20 us, all locks and their peers.
  The tables show each lock against glibc's; the claims below them are what the
  project promises, with what was found here.

Exit status:
  0   measured, and no claim failed
  1   a claim failed, or a lock hung or crashed; the rest is printed
  2   bad usage
";

/// All locks from 1 to 64 threads, and whether they keep our promises
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Locks to measure [default: all]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    lock: Vec<String>,
    /// Measure also through the preload library
    #[arg(long)]
    preload: bool,
    /// Some points and few rounds: two minutes, in which little is decided
    #[arg(long)]
    quick: bool,
    /// Time for everything
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_duration, conflicts_with = "quick")]
    budget: Duration,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Benchmark for Options {
    const NAME: &'static str = "grid";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let library = self.preload.then(Library::of_locks).transpose()?.map(Library::into_path);
        let effort = if self.quick { Effort::Quick } else { Effort::Within(self.budget) };
        let found = grid::run(&lock::Options {
            locks: self.lock.clone(),
            seed: self.seed,
            progress: terminal.shows_progress(),
            ..grid::options(worker_command()?, library, effort)
        })?;
        let text = grid::render(&found);
        let results = Results { claims: found.claims, ..Results::of_this_host(found.measurements) };
        Ok(Outcome { results, text, figure: None, failures: found.failures })
    }

    fn json(&self) -> bool {
        self.json
    }
}

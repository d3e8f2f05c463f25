//! `manycore bench uncontended`: the cost of an uncontended lock.

use crate::uncontended;
use clap::Args;
use manycore_measure::Results;

use crate::front::{Benchmark, Outcome, worker_command};
use manycore_launch::failure::Result;
use manycore_launch::preload::Library;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore bench uncontended
  manycore bench uncontended --preload --lock futex,adaptive --instructions

  With --preload, the claims below the table are what the project promises of the
  locks that were measured, with what was found here.

Exit status:
  0   measured, and no claim failed
  1   a claim failed, a lock did, or valgrind; stderr says which
  2   bad usage
";

/// One thread locks and unlocks: nanoseconds, and instructions
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Locks to measure [default: all]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    lock: Vec<String>,
    /// Measure also through the preload library, without and with statistics
    #[arg(long)]
    preload: bool,
    /// Count instructions as well, by valgrind
    #[arg(long)]
    instructions: bool,
    /// Runs of each lock
    #[arg(long, value_name = "N", default_value_t = 31, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Seed of the order of runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Benchmark for Options {
    const NAME: &'static str = "uncontended";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let measurements = uncontended::run(&uncontended::Options {
            locks: self.lock.clone(),
            preload: self.preload.then(Library::of_locks).transpose()?.map(Library::into_path),
            rounds: self.runs,
            instructions: self.instructions,
            seed: self.seed,
            progress: terminal.shows_progress(),
            ..uncontended::Options::new(worker_command()?)
        })?;
        // Claims for which there are measurements. Without --preload there are none, since the
        // promises are about unmodified programs.
        let mut claims = uncontended::claims(&measurements);
        claims.retain(|claim| claim.value.is_some());
        let results = Results { claims, ..Results::of_this_host(measurements) };
        let text = uncontended::render(&results.measurements, &results.claims);
        Ok(Outcome { results, text, figure: None, failures: Vec::new() })
    }

    fn json(&self) -> bool {
        self.json
    }
}

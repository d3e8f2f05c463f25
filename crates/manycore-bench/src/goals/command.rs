//! `manycore bench goals`: how fast sets, indexes and reverse maps are to be.

use std::time::Duration;

use crate::goals;
use clap::Args;
use humantime::parse_duration;
use manycore_measure::Results;

use crate::front::{Benchmark, Outcome, SimulatorOptions, say_troubles, worker_command};
use crate::set::command::foreign_worker;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore bench goals
  manycore bench goals --part list,hash --budget 10m
  manycore bench goals --part simulated

Parts:
  list, hash   1,000 keys in a list, 10,000 in a hash table; 1, 2 and 8 threads
  zipf         keys of which one in 10,000 gets a tenth of the operations
  100k, 10m    large hash tables, against papaya, scc and dashmap
  index        a B+tree of 10,000 records under YCSB, against ordered maps of others
  index-1m     the same with a million
  rmap         trees of intervals with 8 threads
  simulated, index-simulated
               machines with 120 and 448 CPUs
  The tables show what was measured. The claims below them are what the project
  wants, each with what was found here, its interval and a verdict.

Exit status:
  0   measured, and no claim failed
  1   a claim failed, or a set hung or crashed; the rest is printed
  2   bad usage
";

/// How fast sets, indexes and reverse maps are to be, and whether they are
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Parts to measure
    #[arg(
        long,
        value_name = "A,B,..",
        value_delimiter = ',',
        default_value = "list,hash,zipf,100k,10m,index,index-1m,rmap,simulated,index-simulated"
    )]
    part: Vec<String>,
    /// Time for all that is measured here
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_duration)]
    budget: Duration,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pool: SimulatorOptions,
}

impl Benchmark for Options {
    const NAME: &'static str = "goals";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let settings = goals::Options {
            parts: self.part.clone(),
            budget: self.budget,
            seed: self.seed,
            worker: worker_command()?,
            foreign: foreign_worker(),
            pool: self.pool.start(terminal)?,
            progress: terminal.shows_progress(),
        };
        let found = goals::run(&settings)?;
        say_troubles(&settings.pool, terminal);
        let text = goals::render(&found);
        let results = Results { claims: found.claims, ..Results::of_this_host(found.measurements) };
        Ok(Outcome { results, text, figure: None, failures: found.failures })
    }

    fn json(&self) -> bool {
        self.json
    }
}

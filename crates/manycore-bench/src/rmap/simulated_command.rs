//! `manycore sim rmap`: threads that update trees of intervals on a simulated machine.

use std::time::Duration;

use crate::rmap;
use clap::Args;
use humantime::parse_duration;
use manycore_measure::Results;

use super::command::Workload;
use crate::front::{Benchmark, Outcome, SimulatorOptions, say_troubles};
use crate::machines;
use crate::run_records::RunRecords;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore sim rmap --machine xeon-e7-8870-8x15 --threads 1,30,60,120
  manycore sim rmap --machine xeon-e7-8870-8x15 --threads 120 --update 75,90,100

Workload:
  That of `manycore bench rmap`, run by the same loop. Times are simulated.

Exit status:
  0   simulated
  1   a mechanism got stuck or failed; stderr says which
  2   bad usage
";

/// Threads update trees of intervals which few read, on a simulated machine
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// The machine: a name of `manycore machines`, or the file of a model
    #[arg(long, value_name = "NAME")]
    machine: String,
    #[command(flatten)]
    workload: Workload,
    /// Simulated time that is counted
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = parse_duration, conflicts_with = "operations")]
    duration: Duration,
    /// Length of what is between two operations
    #[arg(long, value_name = "TIME", default_value = "10us", value_parser = parse_duration)]
    outside: Duration,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pool: SimulatorOptions,
}

impl Benchmark for Options {
    const NAME: &'static str = "rmap";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let machine = machines::find(&self.machine)?;
        let settings = self.workload.settings(self.outside, self.duration, terminal);
        let pool = self.pool.start(terminal)?;
        let found = rmap::simulate(&settings, &machine, &pool)?;
        say_troubles(&pool, terminal);
        let RunRecords { measurements, failures } = found;
        let results = Results::new(measurements);
        let text = rmap::render(&results.measurements);
        Ok(Outcome { results, text, figure: None, failures })
    }

    fn json(&self) -> bool {
        self.json
    }
}

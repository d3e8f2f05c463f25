//! `manycore sim db`: a database server whose threads contend for a few hot latches.

use std::time::Duration;

use crate::db;
use crate::mix::USUAL_DATA;
use clap::Args;
use humantime::parse_duration;
use manycore_measure::Results;

use crate::front::{Benchmark, Outcome, SimulatorOptions, VariationOptions, say_troubles};
use crate::machines;
use crate::run_records::RunRecords;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore sim db
  manycore sim db --lock innodb,sleep,hybrid,adaptive --terminals 10,30,50
  manycore sim db --lock innodb --update 0,25
  manycore sim db --cpus 24 --sweep --json

Workload:
  The situation of 'Locking in Practice: Performance of a Database System on a
  Multicore Machine'. Each terminal has a thread of the server. A transaction takes
  one of a few hot latches 100 times, for times that vary, and computes in between;
  then its terminal takes a while. One that updates goes on to change 20 rows of
  another table, by 80 more sections. The shape is assumed, and the time between
  sections is fitted to one observation: see the chapter `sim` of the book.

Exit status:
  0   simulated
  1   a lock got stuck or did not exclude; stderr says which. The others are printed
  2   bad usage
";

/// A database's threads contend for hot latches: transactions, and the CPU time that goes to locks
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// The machine: a name of `manycore machines`, or the file of a model
    #[arg(long, value_name = "NAME", default_value = "xeon-4x6-like")]
    machine: String,
    /// Locks to simulate [default: those of the publication]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    lock: Vec<String>,
    /// Numbers of CPUs
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "4,8,12,16,20,24")]
    cpus: Vec<u32>,
    /// Multiprogramming levels: terminals that send transactions
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "50")]
    terminals: Vec<u32>,
    /// Shares of transactions that update, in percent
    #[arg(long, value_name = "PERCENT,..", value_delimiter = ',', default_value = "0")]
    update: Vec<f64>,
    /// Cache lines of data that each section reads and writes, one after the other
    #[arg(long, value_name = "N", default_value_t = USUAL_DATA)]
    data: u32,
    /// Mean time between two sections [default: 1500ns, fitted]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    outside: Option<Duration>,
    /// Time from a transaction to the next one of the same terminal [default: 200us]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    think: Option<Duration>,
    /// Simulated time that is counted
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_duration)]
    duration: Duration,
    #[command(flatten)]
    variation: VariationOptions,
    #[command(flatten)]
    pool: SimulatorOptions,
}

impl Benchmark for Options {
    const NAME: &'static str = "db";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let machine = machines::find(&self.machine)?;
        let usual = db::Options::new(machine, self.pool.start(terminal)?);
        let settings = db::Options {
            locks: if self.lock.is_empty() { usual.locks } else { self.lock.clone() },
            cpus: self.cpus.clone(),
            terminals: self.terminals.clone(),
            updates: self.update.clone(),
            data: self.data,
            outside: self.outside.unwrap_or(usual.outside),
            think: self.think.unwrap_or(usual.think),
            duration: self.duration,
            seed: self.variation.seed,
            sweep: self.variation.sweep,
            ..usual
        };
        let found = db::run(&settings)?;
        say_troubles(&settings.pool, terminal);
        let RunRecords { measurements, failures } = found;
        let results = Results::new(measurements);
        let text = db::render(&results.measurements);
        Ok(Outcome { results, text, figure: None, failures })
    }

    fn json(&self) -> bool {
        self.variation.json
    }
}

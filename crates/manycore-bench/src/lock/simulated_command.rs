//! `manycore sim lock`: threads that contend for locks on a simulated machine.

use std::time::Duration;

use crate::lock::simulated as lock;
use clap::Args;
use humantime::parse_duration;
use manycore_measure::Results;

use super::flags::PointOptions;
use crate::front::{Benchmark, Outcome, Pin, SimulatorOptions, VariationOptions, say_troubles};
use crate::machines;
use crate::run_records::RunRecords;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore sim lock --machine xeon-e7-8870-8x15 --threads 1,15,30,60,120
  manycore sim lock --machine epyc-2x96 --threads 192 --lock mcs,hmcs,c-bo-mcs --sweep
  manycore sim lock --machine epyc-2x96 --threads 8,64 --section 100ns --data 4
  manycore sim lock --machine ./here.toml --threads 2,32 --section about:1us --json

Locks:
  Those of `manycore locks`, library-only ones too; futex, which does what glibc
  does, is the base line. With --reads also the reader-writer locks.

Workload:
  That of `manycore bench lock`, run by the same loop. Times are simulated. Where
  there is a CPU for every thread, waiters of queue locks never sleep. A section
  moves one cache line, by which the lock is checked, or as many as --data says.

Columns:
  of futex           the ratio to the base line
  p50 wait ... max   the time from asking for a lock to having it
  max/min            sections of the luckiest thread over those of the least lucky
  range              with --sweep: over latencies x0.7 and x1.4, lines held for 0
                     and 150 cycles, reads of a socket combined and not

Exit status:
  0   simulated
  1   a lock got stuck or did not exclude; stderr says which. The others are printed
  2   bad usage
";

/// Threads contend for locks on a simulated machine: throughput, waits, causes
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// The machine: a name of `manycore machines`, or the file of a model
    #[arg(long, value_name = "NAME")]
    machine: String,
    /// How many of the machine's CPUs the threads may use [default: all]
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,
    /// Locks to simulate [default: all]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    lock: Vec<String>,
    #[command(flatten)]
    points: PointOptions,
    /// Simulated time that is counted [default: 10ms; 50 time slices where threads outnumber CPUs]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// CPUs of the threads
    #[arg(long, value_enum, default_value = "auto")]
    pin: Pin,
    /// Simulate each turn of a loop that polls: slow, to check that parking changes nothing
    #[arg(long)]
    every_turn: bool,
    /// Show also where the time goes, and how far lines travel
    #[arg(long)]
    details: bool,
    #[command(flatten)]
    variation: VariationOptions,
    #[command(flatten)]
    pool: SimulatorOptions,
}

impl Benchmark for Options {
    const NAME: &'static str = "lock";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let settings = self.settings(terminal)?;
        let found = lock::run(&settings)?;
        say_troubles(&settings.pool, terminal);
        let RunRecords { measurements, failures } = found;
        let results = Results::new(measurements);
        let text = super::render_simulated(&results.measurements, self.details);
        Ok(Outcome { results, text, figure: None, failures })
    }

    fn json(&self) -> bool {
        self.variation.json
    }
}

impl Options {
    fn settings(&self, terminal: &Terminal) -> Result<lock::Options> {
        let machine = machines::find(&self.machine)?;
        Ok(lock::Options {
            cpus: self.cpus,
            locks: self.lock.clone(),
            threads: self.points.threads.clone(),
            lock_count: self.points.locks,
            sections: self.points.section.clone(),
            outside: self.points.outside,
            reads: self.points.reads,
            data: self.points.data,
            duration: self.duration,
            pinning: self.pin.pinning(),
            seed: self.variation.seed,
            sweep: self.variation.sweep,
            every_turn: self.every_turn,
            ..lock::Options::new(machine, self.pool.start(terminal)?)
        })
    }
}

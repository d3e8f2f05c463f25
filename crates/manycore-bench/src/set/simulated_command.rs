//! `manycore sim set`: threads that use a set on a simulated machine.

use std::time::Duration;

use crate::set::render;
use crate::set::simulated as set;
use clap::Args;
use humantime::parse_duration;
use manycore_measure::Results;

use super::flags::SetOptions;
use crate::found::Found;
use crate::front::{Benchmark, Outcome, Pin, SimulatorOptions, say_troubles};
use crate::machines;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore sim set --machine xeon-8180-8x28x2 --threads 56,112,224,448 --update 20
  manycore sim set --machine xeon-4x6 --structure list --initial 1000 --sync lock:mcs,lock:cna

Workload:
  That of `manycore bench set`, with the same options. Times are simulated; beside
  its accesses to the set, an operation costs 5 ns, which is assumed. Where there
  is a CPU for every thread, waiters of queue locks never sleep.

Exit status:
  0   simulated
  1   a set got stuck or lost a key; stderr says which. The others are printed
  2   bad usage
";

/// Threads use a set on a simulated machine: throughput, latency, causes
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// The machine: a name of `manycore machines`, or the file of a model
    #[arg(long, value_name = "NAME")]
    machine: String,
    /// How many of the machine's CPUs the threads may use [default: all]
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,
    #[command(flatten)]
    sets: SetOptions,
    /// Simulated time that is counted
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = parse_duration)]
    duration: Duration,
    /// Operations of each thread, which then take as long as they take
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    operations: Option<u64>,
    /// CPUs of the threads
    #[arg(long, value_enum, default_value = "auto")]
    pin: Pin,
    /// Vary what nobody knows about the machine, and show the range of results: 18 simulations each
    #[arg(long)]
    sweep: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pool: SimulatorOptions,
}

impl Benchmark for Options {
    const NAME: &'static str = "set";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let settings = set::Options {
            cpus: self.cpus,
            workload: self.sets.workload(),
            duration: self.duration,
            operations: self.operations,
            pinning: self.pin.pinning(),
            sweep: self.sweep,
            ..set::Options::new(machines::find(&self.machine)?, self.pool.start(terminal)?)
        };
        let found = set::run(&settings)?;
        say_troubles(&settings.pool, terminal);
        let Found { measurements, failures } = found;
        let results = Results::new(measurements);
        let text = render(&results.measurements);
        Ok(Outcome { results, text, figure: None, failures })
    }

    fn json(&self) -> bool {
        self.json
    }
}

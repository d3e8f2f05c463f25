//! `manycore sim set`: threads that use a set on a simulated machine.

use std::time::Duration;

use crate::set::render;
use crate::set::simulated as set;
use clap::Args;
use humantime::parse_duration;
use manycore_measure::Results;

use super::flags::SetOptions;
use crate::front::{CrewOptions, say_troubles};
use crate::front::{Pin, failed_locks, failure, print_results};
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
    crew: CrewOptions,
}

/// Simulates, and prints what came out.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    let settings = set::Options {
        cpus: options.cpus,
        workload: options.sets.workload(),
        duration: options.duration,
        operations: options.operations,
        pinning: options.pin.pinning(),
        sweep: options.sweep,
        ..set::Options::new(machines::find(&options.machine)?, options.crew.crew(terminal)?)
    };
    let found = set::run(&settings).map_err(failure)?;
    say_troubles(&settings.crew, terminal);
    let results = Results::new(found.measurements);
    print_results(&results, options.json, || render(&results.measurements))?;
    failed_locks(&found.failures)
}

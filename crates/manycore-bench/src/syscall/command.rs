//! `manycore sim syscall`: a server's system calls where they are made, or near the network card.

use std::time::Duration;

use crate::syscall;
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
  manycore sim syscall
  manycore sim syscall --clients 64,256 --page 50us --interrupt-cpus 4
  manycore sim syscall --machine ./own.toml --sweep --json

Workload:
  The situation of 'System-Call-Level Core Affinity for Improving Network
  Performance': as many workers as clients, each with a connection at a time; the
  card's interrupts are at the first package. In place, a worker's calls run where
  it does; by `thread`, a thread for each worker executes them on the card's
  package. What the kernel does is assumed, number by number, and the numbers are
  printed: see the chapter `sim` of the book for what that is worth.

Exit status:
  0   simulated
  1   a simulation failed; stderr says which. The others are printed
  2   bad usage
";

/// A server's system calls in place, or by threads near the network card: requests, and lines
/// between packages
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// The machine: a name of `manycore machines`, or the file of a model
    #[arg(long, value_name = "NAME", default_value = "ivybridge-2x10-like")]
    machine: String,
    /// Numbers of clients, each with a worker
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,4,16,64,128,256")]
    clients: Vec<u32>,
    /// Computation for a page [default: 100us, assumed]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    page: Option<Duration>,
    /// To a client and back [default: 50us, assumed]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    round_trip: Option<Duration>,
    /// From an answer to a client's next request, in addition [default: 0, assumed]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    think: Option<Duration>,
    /// CPUs of the first package that serve interrupts only [default: 1, assumed]
    #[arg(long, value_name = "N")]
    interrupt_cpus: Option<u32>,
    /// How long a side of the channel looks before it sleeps [default: 2860ns, the library's]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    spin: Option<Duration>,
    /// Simulated time that is counted
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = parse_duration)]
    duration: Duration,
    #[command(flatten)]
    variation: VariationOptions,
    #[command(flatten)]
    pool: SimulatorOptions,
}

impl Benchmark for Options {
    const NAME: &'static str = "syscall";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let machine = machines::find(&self.machine)?;
        let usual = syscall::Options::new(machine, self.pool.start(terminal)?);
        let ns = |time: Option<Duration>, usual: f64| time.map_or(usual, |t| t.as_nanos() as f64);
        let assumed = syscall::Assumptions {
            page_ns: ns(self.page, usual.assumed.page_ns),
            round_trip_ns: ns(self.round_trip, usual.assumed.round_trip_ns),
            think_ns: ns(self.think, usual.assumed.think_ns),
            interrupt_cpus: self.interrupt_cpus.unwrap_or(usual.assumed.interrupt_cpus),
            spin_ns: ns(self.spin, usual.assumed.spin_ns),
            ..usual.assumed
        };
        let settings = syscall::Options {
            clients: self.clients.clone(),
            assumed,
            duration: self.duration,
            seed: self.variation.seed,
            sweep: self.variation.sweep,
            ..usual
        };
        let found = syscall::run(&settings)?;
        say_troubles(&settings.pool, terminal);
        let RunRecords { measurements, failures } = found;
        let results = Results::new(measurements);
        let text = syscall::render(&results.measurements, &settings.assumed);
        Ok(Outcome { results, text, figure: None, failures })
    }

    fn json(&self) -> bool {
        self.variation.json
    }
}

//! `manycore sim kernel`: an application whose calls take several locks of the kernel.

use std::time::Duration;

use crate::kernel;
use clap::{Args, ValueEnum};
use humantime::parse_duration;
use manycore_measure::Results;

use crate::front::{Benchmark, Outcome, SimulatorOptions, VariationOptions, say_troubles};
use crate::machines;
use crate::run_records::RunRecords;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore sim kernel
  manycore sim kernel --of threads --threads 15,30,60,120
  manycore sim kernel --threads 120 --assume walks=0 --assume log_ns=5000 --json

Workload:
  The situation of 'An Analysis of Lock Contention in Linux Memory Management for
  Many-core System': AIM7, processes that make processes on tmpfs, or SPECjbb2013,
  threads of one process. Calls take the kernel's locks as often as their work
  requires; each number is printed with where it comes from, and --assume changes
  it. The computation between two operations is fitted: see the chapter `sim`.

Rows:
  jobs            users who always have a job; a job here is a process that is made
  max-jops        requests, as many as are served
  critical-jops   requests, as many as can come with 99 % of them served in time

Exit status:
  0   simulated
  1   a simulation failed; stderr says which. The others are printed
  2   bad usage
";

/// What runs on the kernel.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Application {
    /// AIM7 multiuser: processes that make processes
    Processes,
    /// SPECjbb2013: threads of one process
    Threads,
}

/// An application's threads wait for the kernel's locks: throughput, and which lock is waited for
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// The application
    #[arg(long, value_enum, default_value = "processes")]
    of: Application,
    /// The machine: a name of `manycore machines`, or the file of a model
    #[arg(long, value_name = "NAME", default_value = "xeon-e7-8870-8x15-like")]
    machine: String,
    /// Numbers of threads, each with a CPU
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,15,30,60,90,120")]
    threads: Vec<u32>,
    /// Mean computation between two operations [default: fitted, by application]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    compute: Option<Duration>,
    /// Another value for a number of the model; the output shows it with the others
    #[arg(long, value_name = "NAME=VALUE", value_parser = assumption)]
    assume: Vec<(String, f64)>,
    /// Simulated time that is counted
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = parse_duration)]
    duration: Duration,
    #[command(flatten)]
    variation: VariationOptions,
    #[command(flatten)]
    pool: SimulatorOptions,
}

fn assumption(text: &str) -> std::result::Result<(String, f64), String> {
    let pair = text.split_once('=');
    let pair = pair.and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
    pair.ok_or_else(|| "it is a name and a number, such as walks=0.1".to_owned())
}

impl Benchmark for Options {
    const NAME: &'static str = "kernel";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let machine = machines::find(&self.machine)?;
        let application = match self.of {
            Application::Processes => kernel::Application::Processes,
            Application::Threads => kernel::Application::Threads,
        };
        let pool = self.pool.start(terminal)?;
        let mut settings = kernel::Options {
            threads: self.threads.clone(),
            duration: self.duration,
            seed: self.variation.seed,
            sweep: self.variation.sweep,
            ..kernel::Options::new(machine, application, pool)
        };
        settings.compute = self.compute.unwrap_or(settings.compute);
        for (name, value) in &self.assume {
            settings.numbers.set(name, *value)?;
        }
        let found = kernel::run(&settings)?;
        say_troubles(&settings.pool, terminal);
        let RunRecords { measurements, failures } = found;
        let results = Results::new(measurements);
        let text = kernel::render(&results.measurements, &settings);
        Ok(Outcome { results, text, figure: None, failures })
    }

    fn json(&self) -> bool {
        self.variation.json
    }
}

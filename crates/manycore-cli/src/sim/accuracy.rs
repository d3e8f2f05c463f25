//! `manycore sim accuracy`: how far the simulator can be believed, on this host.

use std::time::Duration;

use clap::Args;
use manycore_bench::host;
use manycore_bench::simulated::accuracy;
use manycore_report::Results;
use manycore_sim::Model;

use super::crew::{CrewOptions, say_troubles};
use crate::bench::{failed_claims, failed_locks, failure, report, worker_command};
use crate::failure::Result;
use crate::machines;
use crate::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore sim accuracy
  manycore sim accuracy --quick --machine ./here.toml

Measures this host as `manycore machines measure` does, then runs 12 locks under 9
workloads, natively in interleaved rounds and on the simulated host, and compares.
No workload was used to calibrate anything. Takes about ten minutes, and a machine
that does nothing else.

Exit status:
  0   compared, and no claim failed
  1   a claim failed, or a lock did; the rest is printed
  2   bad usage
";

/// Compare simulated with native results on this host
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// The model of this host: a file, or a name [default: one that is measured now]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Numbers of threads; the claims are about 1 and 2
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,8,32", value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: Vec<u32>,
    /// Native rounds
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// One round of short slices, with 1 and 2 threads: shows that it works, and decides nothing
    #[arg(long, conflicts_with_all = ["threads", "rounds"])]
    quick: bool,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    crew: CrewOptions,
}

/// Compares, and prints what came out.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    let model = options.model(terminal)?;
    let usual = accuracy::Options::new(model, worker_command()?, options.crew.crew(terminal)?);
    let settings = match options.quick {
        true => accuracy::Options {
            threads: vec![1, 2],
            rounds: 1,
            slice: Duration::from_millis(2),
            checked: Duration::from_micros(100),
            seed: options.seed,
            ..usual
        },
        false => accuracy::Options {
            threads: options.threads.clone(),
            rounds: options.rounds,
            seed: options.seed,
            ..usual
        },
    };
    let found = accuracy::run(&settings).map_err(failure)?;
    say_troubles(&settings.crew, terminal);
    let results = Results {
        claims: found.claims.clone(),
        ..Results::of_this_host(found.measurements.clone())
    };
    report(&results, options.json, || accuracy::render(&found))?;
    failed_locks(&found.failures)?;
    failed_claims(&found.claims)
}

impl Options {
    fn model(&self, terminal: &Terminal) -> Result<Model> {
        if let Some(name) = &self.machine {
            return machines::find(name);
        }
        let host = host::measure(|what| terminal.say(format_args!("measuring {what}")));
        Ok(host.map_err(failure)?.model("this-host"))
    }
}

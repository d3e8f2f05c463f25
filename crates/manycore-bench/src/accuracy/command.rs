//! `manycore sim accuracy`: how well the simulator agrees with this host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::accuracy::machines::{Extent, Kind};
use crate::accuracy::{self, machines as published, structures};
use crate::host;
use crate::simulated::SimulatorPool;
use clap::{Args, ValueEnum};
use manycore_measure::Results;
use manycore_sim::Model;

use crate::front::{Benchmark, Outcome, SimulatorOptions, say_troubles, worker_command};
use crate::machines;
use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore sim accuracy
  manycore sim accuracy --of structures
  manycore sim accuracy --of machines
  manycore sim accuracy --of machines --kind lists,locks --page ./judged.html
  manycore sim accuracy --quick --machine ./here.toml

Measures this host as `manycore machines measure` does, then runs 12 locks under 9
workloads, natively in interleaved rounds and on the simulated host, and compares. No workload
was used to calibrate anything.

With `--of structures` these are sets and reverse maps by several mechanisms, under
15 workloads. Four kernels, which are none of those workloads, a table and a tree under a lock,
say what an operation takes apart from its accesses.

With `--of machines` nothing is measured here: what others published of machines with
12 to 144 CPUs stands beside simulations of models of these. Compared are factors, not
rates: one thread to the peak, peak to the most threads, subject over subject; which of
two subjects is ahead; and where curves bend. --set, --kind, --machine and --threads
choose; --set takes a file of your own as well. Some minutes.

Takes about ten minutes but for that one, and a machine that does nothing else.

Exit status:
  0   compared, and no claim failed
  1   a claim failed, or a lock or a structure did
  2   bad usage
";

/// Compare simulated with native results on this host
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// The model of this host: a file, or a name [default: one that is measured now]; with
    /// machines: only this one [default: all]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// What is compared
    #[arg(long, value_enum, default_value = "locks")]
    of: Of,
    /// Numbers of threads; the claims are about 1 and 2 [default: 1,2,8,32; of structures 1,2; of
    /// machines all that were measured]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=384))]
    threads: Vec<u32>,
    /// Native rounds
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// One round of short slices, with 1 and 2 threads: shows that it works, and decides nothing
    #[arg(long, conflicts_with_all = ["threads", "rounds"])]
    quick: bool,
    /// With machines: only these sets [default: all]
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    set: Vec<String>,
    /// With machines: only sets of these kinds [default: all]
    #[arg(long, value_name = "KIND,..", value_delimiter = ',', value_enum)]
    kind: Vec<Kind>,
    /// With machines: every case and every number of threads that was published; some hours
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// With machines: write a page with pictures to this file
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pool: SimulatorOptions,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Of {
    /// Locks
    Locks,
    /// Sets and reverse maps
    Structures,
    /// What others measured on real machines
    Machines,
}

impl Benchmark for Options {
    const NAME: &'static str = "accuracy";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let of_machines = !self.set.is_empty() || !self.kind.is_empty() || self.full;
        if self.of != Of::Machines && (of_machines || self.page.is_some()) {
            let fault = "--set, --kind, --full and --page choose of what others measured";
            return Err(Failure::bad_input(fault, "add `--of machines`"));
        }
        let pool = self.pool.start(terminal)?;
        match self.of {
            Of::Locks => self.locks(self.model(terminal)?, pool, terminal),
            Of::Structures => self.structures(self.model(terminal)?, pool, terminal),
            Of::Machines => self.machines(pool, terminal),
        }
    }

    fn json(&self) -> bool {
        self.json
    }
}

impl Options {
    fn locks(&self, model: Model, pool: SimulatorPool, terminal: &Terminal) -> Result<Outcome> {
        let usual = accuracy::Options::new(model, worker_command()?, pool);
        let settings = match self.quick {
            true => accuracy::Options {
                threads: vec![1, 2],
                rounds: 1,
                slice: Duration::from_millis(2),
                checked: Duration::from_micros(100),
                seed: self.seed,
                ..usual
            },
            false => accuracy::Options {
                threads: self.threads_or(usual.threads.clone()),
                rounds: self.rounds,
                seed: self.seed,
                ..usual
            },
        };
        let found = accuracy::run(&settings)?;
        say_troubles(&settings.pool, terminal);
        let text = accuracy::render(&found);
        let results = Results { claims: found.claims, ..Results::of_this_host(found.measurements) };
        Ok(Outcome { results, text, figure: None, failures: found.failures })
    }

    fn structures(
        &self,
        model: Model,
        pool: SimulatorPool,
        terminal: &Terminal,
    ) -> Result<Outcome> {
        let usual = structures::Options::new(model, worker_command()?, pool);
        let settings = match self.quick {
            true => structures::Options {
                rounds: 1,
                slice: Duration::from_millis(2),
                simulated: Duration::from_micros(100),
                seed: self.seed,
                ..usual
            },
            false => structures::Options {
                threads: self.threads_or(usual.threads.clone()),
                rounds: self.rounds,
                seed: self.seed,
                ..usual
            },
        };
        let found = structures::run(&settings)?;
        say_troubles(&settings.pool, terminal);
        let text = structures::render(&found);
        let results = Results { claims: found.claims, ..Results::of_this_host(found.measurements) };
        Ok(Outcome { results, text, figure: None, failures: Vec::new() })
    }

    fn machines(&self, pool: SimulatorPool, terminal: &Terminal) -> Result<Outcome> {
        let settings = published::Options {
            sets: self.set.clone(),
            machines: self.machine.iter().cloned().collect(),
            kinds: self.kind.clone(),
            threads: self.threads.clone(),
            extent: match (self.quick, self.full) {
                (true, _) => Extent::Quick,
                (_, true) => Extent::Full,
                _ => Extent::Usual,
            },
            seed: self.seed,
            ..published::Options::new(pool)
        };
        let found = published::run(&settings)?;
        say_troubles(&settings.pool, terminal);
        if let Some(path) = &self.page {
            self.write_page(path, &found, terminal)?;
        }
        let text = published::render(&found);
        let results = Results { claims: found.claims, ..Results::new(found.measurements) };
        Ok(Outcome { results, text, figure: None, failures: found.failures })
    }

    fn write_page(
        &self,
        path: &Path,
        found: &published::PublishedAccuracy,
        terminal: &Terminal,
    ) -> Result<()> {
        std::fs::write(path, published::page(found)).map_err(|error| {
            let fault = format!("cannot write '{}': {error}", path.display());
            Failure::bad_input(fault, "name a file in a directory that you may write to")
        })?;
        terminal.note(format_args!("wrote the page to {}", path.display()));
        Ok(())
    }

    fn threads_or(&self, usual: Vec<u32>) -> Vec<u32> {
        if self.threads.is_empty() { usual } else { self.threads.clone() }
    }

    fn model(&self, terminal: &Terminal) -> Result<Model> {
        if let Some(name) = &self.machine {
            return machines::find(name);
        }
        let host = host::measure(|what| terminal.say(format_args!("measuring {what}")));
        Ok(host?.model("this-host"))
    }
}

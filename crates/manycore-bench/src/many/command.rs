//! `manycore sim many`: the locks against each other on all machines with many CPUs.

use std::time::Duration;

use crate::many::{self, Effort, Kind};
use clap::{Args, ValueEnum};
use humantime::parse_duration;
use manycore_measure::Results;
use manycore_sim::Model;

use crate::front::{Benchmark, Outcome, PlotOptions, SimulatorOptions, say_troubles};
use crate::machines;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore sim many --quick
  manycore sim many --budget 20m --plot many.html
  manycore sim many --machines epyc-2x96,xeon-8488c-2x48x2 --of rw --json

Points:
  1, 2, 4, 8, 16, 32 and 64 threads, as many as CPUs, and twice as many; sections
  of 50 ns, 100 ns, 1 us and 10 us that move 1 and 4 cache lines; nothing, 200 ns
  and 10 times the section between two. With --of rw sections of 100 ns and 1 us
  of which 50, 90, 99 and 100 % only read, 200 ns apart.

Tables:
  The throughput of each lock over that of the best other lock at each point:
  geometric mean, lowest, and at how many points it is under the bar; the lowest
  over futex, which stands for glibc's mutex. Then adaptive (adaptive-rw) by
  machine and number of threads, where it is farthest behind, and what is asked
  of it. --plot draws a heat map for each length of sections.

A run with --budget draws its points from all, always in the same order; what is
known is not simulated again, so that a longer run goes on where a shorter ended.

Exit status:
  0   simulated, and no claim failed
  1   a claim failed, or a lock got stuck or did not exclude
  2   bad usage
";

/// The locks against each other on simulated machines with many CPUs
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Machines, by name or file of a model [default: all with 20 CPUs and more]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    machines: Vec<String>,
    /// Which locks
    #[arg(long, value_enum, default_value = "mutexes")]
    of: Of,
    /// Locks in addition to adaptive and futex [default: all]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    lock: Vec<String>,
    /// A few points of each machine
    #[arg(long, conflicts_with = "budget")]
    quick: bool,
    /// Time for everything: as many points as fit into it [default: all points]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    budget: Option<Duration>,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    plot: PlotOptions,
    #[command(flatten)]
    pool: SimulatorOptions,
}

/// Which locks meet.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Of {
    /// Mutexes
    Mutexes,
    /// Reader-writer locks
    Rw,
}

impl Benchmark for Options {
    const NAME: &'static str = "many";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let machines = self.machines.iter().map(|name| machines::find(name));
        let settings = many::Options {
            machines: machines.collect::<Result<Vec<Model>>>()?,
            kind: match self.of {
                Of::Mutexes => Kind::Mutexes,
                Of::Rw => Kind::ReaderWriter,
            },
            locks: self.lock.clone(),
            effort: match self.budget {
                _ if self.quick => Effort::Quick,
                Some(budget) => Effort::Within(budget),
                None => Effort::Whole,
            },
            seed: self.seed,
            pool: self.pool.start(terminal)?,
        };
        let found = many::run(&settings)?;
        say_troubles(&settings.pool, terminal);
        let (text, figure) = (many::render(&found), Some(many::figure(&found)));
        let results = Results { claims: found.claims, ..Results::new(found.measurements) };
        Ok(Outcome { results, text, figure, failures: found.failures })
    }

    fn json(&self) -> bool {
        self.json
    }

    fn plot(&self) -> Option<&PlotOptions> {
        Some(&self.plot)
    }
}

//! `manycore bench mariadb`: a real database under each lock, as in "Locking in Practice:
//! Performance of a Database System on a Multicore Machine" (H. Han).

mod output;
mod picture;
mod server;

use std::time::Duration;

use crate::cpus;
use clap::Args;
use humantime::parse_duration;
use manycore_measure::paired::Schedule;

use crate::front::{Benchmark, Front, Outcome, PlotOptions};
use crate::workload::Workload;
use manycore_compare::rounds::{Limit, Rounds, Series};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;
use manycore_launch::spec::Spec;
use manycore_launch::terminal::Terminal;
use output::results;
use server::{Database, Mix, Spin};

const NOTES: &str = "\
Examples:
  manycore bench mariadb
  manycore bench mariadb --lock innodb,sleep,hybrid,adaptive --terminals 50 --mix 75:25
  manycore bench mariadb --runs 7 --plot mariadb.svg
  manycore bench mariadb --spin 30/4,0/0,30/6000 --lock futex --budget 1h --json

Workload:
  A MariaDB of its own, on a copy of three tables of 100,000 rows that fit into memory.
  A read-only transaction sums 100 consecutive rows; an updating one also updates 20
  random rows of the next table. sysbench runs as many terminals as asked for, on any
  CPU. The server may use the first CPUs only, as --cpus says.

Locks:
  The first is glibc's, the base line. InnoDB's own latches, which wait by futexes in
  line, stay what they are under all of them; how long those spin is --spin.

Columns:
  of glibc's       the ratio, with its interval over all locks of the table
  kernel, program, lock   where the server's CPU time went in the first run, which
                   counts and is not measured; of glibc's locks nothing is counted

Exit status:
  0   measured
  1   a server or its load failed
  2   bad usage, or MariaDB or sysbench is not installed
";

/// Measure a database under several locks: transactions a second, and where the CPU time goes
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Locks to measure in addition to glibc's
    #[arg(
        long,
        value_name = "A,B,..",
        value_delimiter = ',',
        default_value = "innodb,sleep,hybrid,adaptive"
    )]
    lock: Vec<Spec>,
    /// Multiprogramming levels: terminals that send transactions
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "10,30,50", value_parser = clap::value_parser!(u16).range(1..=1000))]
    terminals: Vec<u16>,
    /// Read-only to updating transactions
    #[arg(long, value_name = "R:U,..", value_delimiter = ',', default_value = "100:0,75:25")]
    mix: Vec<Mix>,
    /// Numbers of CPUs for the server [default: powers of two, and all]
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    cpus: Vec<usize>,
    /// InnoDB's own latches: rounds that they spin, and the delay between two
    #[arg(long, value_name = "ROUNDS/DELAY,..", value_delimiter = ',', default_value = "30/4")]
    spin: Vec<Spin>,
    /// Rows of a table
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    rows: u32,
    /// Length of a run, in whole seconds
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = parse_duration)]
    time: Duration,
    /// Time for all measurements; each lock has at least as many runs at each point as a verdict
    /// needs
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_duration)]
    budget: Duration,
    /// Runs of each lock at each point [default: as the budget allows]
    #[arg(long, value_name = "N", conflicts_with = "budget", value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: Option<u16>,
    /// Seed of the order of runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    plot: PlotOptions,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A situation in which all locks are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    mix: Mix,
    terminals: u16,
    cpus: usize,
    spin: Spin,
}

/// What the locks did in it.
struct Measured {
    point: Point,
    /// The same order as the candidates'.
    series: Vec<Series>,
}

impl Benchmark for Options {
    const NAME: &'static str = "mariadb";

    fn measure(&self, terminal: &Terminal) -> Result<Outcome> {
        let hour = Duration::from_secs(3_600);
        if !(Duration::from_secs(1)..=hour).contains(&self.time) || self.time.subsec_nanos() != 0 {
            return Err(Failure::bad_input(
                format!("a run cannot take {}", humantime::format_duration(self.time)),
                "let --time be whole seconds, an hour at most",
            ));
        }
        let points = self.points()?;
        let candidates = self.candidates()?;
        let mut inbox = Inbox::open()?;
        let database = Database::make(self.rows, &candidates[0], &mut inbox, terminal)?;
        let mut measured = Vec::new();
        // In an order of their own: a machine that becomes slower shall not do so along an axis.
        let order = Schedule::new(points.len(), self.seed).next().unwrap_or_default();
        for (done, number) in order.into_iter().enumerate() {
            let point = points[number];
            terminal.note(format_args!("{} of {}: {point}", done + 1, points.len()));
            let rounds = Rounds {
                plan: &database.plan(&point, self.time),
                metric: &server::metric(),
                candidates: &candidates,
                limit: self.limit(points.len()),
                seed: self.seed,
            };
            let series = rounds.measure(&mut inbox, terminal);
            let series = series.map_err(|failure| failure.during(point))?;
            measured.push((number, Measured { point, series }));
        }
        measured.sort_by_key(|(number, _)| *number);
        let measured: Vec<Measured> = measured.into_iter().map(|(_, measured)| measured).collect();
        let locks: Vec<String> = candidates.iter().map(|one| one.lock().to_string()).collect();
        let found = results(&locks, &measured, self.seed)?;
        let (text, figure) = (output::render(&found), Some(picture::figure(&found)));
        Ok(Outcome { results: found, text, figure, failures: Vec::new() })
    }

    fn json(&self) -> bool {
        self.json
    }

    fn plot(&self) -> Option<&PlotOptions> {
        Some(&self.plot)
    }
}

/// A database under each lock.
pub(crate) struct Mariadb;

impl Workload for Mariadb {
    fn measured(&self) -> Vec<Front> {
        vec![Front::of::<Options>()]
    }
}

impl Options {
    fn points(&self) -> Result<Vec<Point>> {
        let there = cpus::allowed().len();
        let usual = || (0..).map(|power| 1 << power).take_while(|count| *count < there);
        let cpus: Vec<usize> = match self.cpus.is_empty() {
            true => usual().chain([there]).collect(),
            false => self.cpus.clone(),
        };
        if let Some(count) = cpus.iter().find(|count| !(1..=there).contains(count)) {
            return Err(Failure::bad_input(
                format!("the server cannot have {count} CPUs"),
                format!("this command may use {there}"),
            ));
        }
        let mut points = Vec::new();
        for mix in &self.mix {
            for terminals in &self.terminals {
                for spin in &self.spin {
                    points.extend(cpus.iter().map(|cpus| Point {
                        mix: *mix,
                        terminals: *terminals,
                        cpus: *cpus,
                        spin: *spin,
                    }));
                }
            }
        }
        Ok(points)
    }

    fn candidates(&self) -> Result<Vec<Interposition>> {
        let base: Spec = "glibc".parse()?;
        let mut locks = vec![base];
        for lock in &self.lock {
            if !locks.iter().any(|known| known.as_str() == lock.as_str()) {
                locks.push(lock.clone());
            }
        }
        locks.into_iter().map(Interposition::new).collect()
    }

    fn limit(&self, points: usize) -> Limit {
        match self.runs {
            Some(runs) => Limit::Runs(runs.into()),
            None => Limit::Budget(self.budget / points as u32),
        }
    }
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { mix, terminals, cpus, spin } = self;
        let plural = if *cpus == 1 { "" } else { "s" };
        write!(f, "{mix}, {terminals} terminals, {cpus} CPU{plural}, InnoDB's spin {spin}")
    }
}

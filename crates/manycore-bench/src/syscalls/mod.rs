//! `manycore bench syscalls`: the cost or gain of moving system calls, in the situations of figures
//! 4 to 6 of "System-Call-Level Core Affinity for Improving Network Performance".

mod apache;
mod conversation;
mod driver;
mod jmeter;
mod nuttcp;
mod output;
mod picture;
mod plans;
mod policy;
mod rounds;
mod tools;
mod work;

use std::time::Duration;

use clap::{Args, ValueEnum};
use conversation::MESSAGE_BYTES_MAX;
use humantime::{format_duration, parse_duration};
use manycore_measure::paired::Better;

use crate::front::{Front, PlotOptions, Run, print_results};
use crate::workload::Workload;
use apache::Apache;
use driver::Driver;
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;
use manycore_launch::terminal::Terminal;
use policy::Policy;
use rounds::Bench;

const NOTES: &str = "\
Examples:
  manycore bench syscalls
  manycore bench syscalls --part bandwidth,latency --sizes 64,1024,65536
  manycore bench syscalls --part bandwidth --driver own,iperf3 --syscalls auto
  manycore bench syscalls --part apache --clients 1,16,256 --syscalls auto --plot a.svg
  manycore bench syscalls --syscalls nic-llc:mechanism=pool --budget 1h --precision 1 --json

Parts:
  bandwidth   a process sends messages to another over TCP: bytes a second
  latency     a message there and back: the time of a round
  apache      Apache prefork with mod_php, a page that loops, a connection for each
              request

Drivers:
  own         of bandwidth and latency: two processes of this command
  iperf3      of bandwidth; both ends on 127.0.0.1
  nuttcp      likewise, in a network namespace, because it listens on all interfaces
  wrk         of Apache; the load runs on any CPU
  jmeter      likewise; JMETER_HOME is where it is [default: /usr/share/jmeter]

Policies:
  As of `manycore run --syscalls`; the base line is none. Both processes of a
  conversation are under the policy; of Apache the server, not its load.

Rounds:
  In each round every policy has its turn at every point. Servers have three in a round,
  whose median is the round's value. A point has as many rounds as it needs for
  intervals of --precision, ten or more, until --budget is over; one in any case. To
  stop once they are seen to be narrow makes intervals slightly too narrow.
  A round that fails is repeated once; then what there is is printed, and the command
  fails.

Columns:
  of none's   the ratio, with its interval over all policies of the table. Of a latency
              a ratio below 1 is the good one

Exit status:
  0   measured
  1   a program failed
  2   bad usage, or a program is not installed
";

/// Measure moved system calls: bandwidth and latency by message size, Apache's throughput by
/// clients
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// What to measure
    #[arg(
        long,
        value_name = "PART,..",
        value_delimiter = ',',
        default_value = "bandwidth,latency,apache"
    )]
    part: Vec<Part>,
    /// Programs that do it; each drives the parts that it can
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = "own,wrk")]
    driver: Vec<Driver>,
    /// Policies to measure beside none
    #[arg(
        long,
        value_name = "POLICY,..",
        default_value = "auto,nic-llc:mechanism=thread,nic-llc:mechanism=pool,nic-llc:mechanism=uring",
        value_parser = policy::list
    )]
    syscalls: Vec<Policies>,
    /// Lengths of messages, in bytes
    #[arg(
        long,
        value_name = "N,..",
        value_delimiter = ',',
        default_value = "64,512,4096,32768,262144"
    )]
    sizes: Vec<usize>,
    /// Numbers of clients of Apache
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,4,16,64,256", value_parser = clap::value_parser!(u16).range(1..=1000))]
    clients: Vec<u16>,
    /// How often the page loops
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    loops: u32,
    /// Length of a run; of wrk, iperf3 and nuttcp in whole seconds
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = parse_duration)]
    time: Duration,
    /// Rounds go on at a point until its ratios are known to this many percent
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    precision: f64,
    /// No more rounds begin after this time
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = parse_duration)]
    budget: Duration,
    /// The most rounds
    #[arg(long, value_name = "N", default_value_t = 101, value_parser = clap::value_parser!(u32).range(1..=300))]
    rounds: u32,
    /// Seed of the order of runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    plot: PlotOptions,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What one mention of `--syscalls` lists.
type Policies = policy::List;

/// A part of the benchmark: one figure of the publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Part {
    /// Bytes a second by message size.
    Bandwidth,
    /// Time there and back by message size.
    Latency,
    /// Requests a second by clients.
    Apache,
}

impl Part {
    /// Which values are the good ones.
    fn better(self) -> Better {
        if self == Self::Latency { Better::Lower } else { Better::Higher }
    }
}

/// A situation in which all policies are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    part: Part,
    driver: Driver,
    /// Bytes of a message, or clients.
    level: usize,
}

/// What the policies did in it.
struct Measured {
    point: Point,
    /// By policy and round: as many of each policy.
    values: Vec<Vec<f64>>,
}

impl Run for Options {
    /// Runs the benchmark. If something fails, earlier measurements are still printed.
    fn run(&self, terminal: &Terminal) -> Result<()> {
        let points = self.points()?;
        let mut drivers: Vec<Driver> = points.iter().map(|point| point.driver).collect();
        drivers.dedup();
        drivers.iter().try_for_each(|driver| plans::check(*driver))?;
        let policies = self.policies()?;
        let canvas = self.plot.open()?;
        let mut inbox = Inbox::open()?;
        let has_apache = points.iter().any(|point| point.part == Part::Apache);
        let apache = has_apache.then(|| Apache::prepare(self.loops, &drivers)).transpose()?;
        let interposition = Interposition::new("glibc".parse()?)?;
        let bench =
            Bench { options: self, policies: &policies, apache: apache.as_ref(), interposition };
        let (measured, ended) = bench.measure(&points, &mut inbox, terminal);
        let is_shown = !measured.is_empty() && !matches!(ended, Err(Failure::Interrupted(_)));
        if is_shown {
            let found = output::results(&policies, &measured, self)?;
            let text = output::render(&found);
            if let Some(canvas) = canvas {
                canvas.draw(&picture::figure(&found), &text)?;
            }
            print_results(&found, self.json, &text)?;
        }
        ended
    }
}

/// What moving system calls costs or gains.
pub(crate) struct MovedCalls;

impl Workload for MovedCalls {
    fn measured(&self) -> Vec<Front> {
        vec![
            Front::named::<Options>("syscalls"),
            Front::named::<conversation::Serve>("conversation"),
        ]
    }
}

impl Options {
    fn points(&self) -> Result<Vec<Point>> {
        let hour = Duration::from_secs(3_600);
        if !(Duration::from_millis(10)..=hour).contains(&self.time) {
            return Err(Failure::bad_input(
                format!("a run cannot take {}", format_duration(self.time)),
                "let --time be 10ms to 1h",
            ));
        }
        if !(0.01..=100.0).contains(&self.precision) {
            return Err(Failure::bad_input(
                format!("ratios cannot be known to {} %", self.precision),
                "let --precision be 0.01 to 100",
            ));
        }
        if let Some(size) = self.sizes.iter().find(|size| !(1..=MESSAGE_BYTES_MAX).contains(size)) {
            return Err(Failure::bad_input(
                format!("messages of {size} bytes cannot be measured"),
                format!("let --sizes be 1 to {MESSAGE_BYTES_MAX}"),
            ));
        }
        let clients: Vec<usize> = self.clients.iter().map(|clients| (*clients).into()).collect();
        let (sizes, clients) = (sorted(self.sizes.clone()), sorted(clients));
        let mut points = Vec::new();
        for part in sorted(self.part.clone()) {
            let levels = if part == Part::Apache { &clients } else { &sizes };
            let drivers = sorted(self.driver.clone()).into_iter().filter(|d| d.drives(part));
            let before = points.len();
            for driver in drivers {
                points.extend(levels.iter().map(|level| Point { part, driver, level: *level }));
            }
            if points.len() == before {
                return Err(Failure::bad_input(
                    format!("no driver of --driver can do '{part}'"),
                    "add one (own for bandwidth and latency, wrk for apache), or leave the part out",
                ));
            }
        }
        Ok(points)
    }

    /// None first, then what was asked for, each once.
    fn policies(&self) -> Result<Vec<Policy>> {
        let mut policies = vec![Policy::none()];
        for policy in self.syscalls.iter().flat_map(Policies::iter) {
            if !policies.contains(policy) {
                policy.check()?;
                policies.push(policy.clone());
            }
        }
        Ok(policies)
    }
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort();
    all.dedup();
    all
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bandwidth => "bandwidth",
            Self::Latency => "latency",
            Self::Apache => "apache",
        })
    }
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (part, level, driver) = (self.part, self.level, self.driver.name());
        let unit = if self.part == Part::Apache { "clients" } else { "bytes" };
        write!(f, "{part} by {driver}, {level} {unit}")
    }
}

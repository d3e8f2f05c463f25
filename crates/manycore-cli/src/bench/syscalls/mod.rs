//! `manycore bench syscalls`: what moving system calls costs or gains, in the situations of figures 4 to 6 of
//! "System-Call-Level Core Affinity for Improving Network Performance".

mod apache;
mod output;
mod picture;
mod policy;

use std::time::Duration;

use clap::{Args, ValueEnum};
use humantime::{format_duration, parse_duration};
use manycore_bench::conversation::{MESSAGE_BYTES_MAX, Order, What};
use manycore_bench::paired::{Better, Schedule};

use super::plot::PlotOptions;
use super::report;
use crate::failure::{Failure, Result};
use crate::preload::Interposition;
use crate::signals::Inbox;
use crate::terminal::Terminal;
use crate::trial::{Outcome, Plan};
use apache::Apache;
use policy::Policy;

const NOTES: &str = "\
Examples:
  manycore bench syscalls
  manycore bench syscalls --part bandwidth,latency --sizes 64,1024,65536
  manycore bench syscalls --part apache --clients 1,16,256 --syscalls auto --plot a.svg
  manycore bench syscalls --syscalls nic-llc:mechanism=pool,nic-llc:mechanism=uring --json

Parts:
  bandwidth   a process sends messages to another over TCP: bytes a second
  latency     a message there and back: the time of a round
  apache      Apache prefork with mod_php, a page that loops, a connection for each
              request; wrk is the load, on any CPU

Policies:
  As of `manycore run --syscalls`; the base line is none. Both processes of a
  conversation are under the policy; of Apache the server, not its load.

Columns:
  of none's   the ratio, with its interval over all policies of the table. Of a latency
              a ratio below 1 is the good one

Exit status:
  0   measured
  1   a program failed
  2   bad usage, or Apache, mod_php or wrk is not installed
";

/// How much longer than its time a run may take.
const GRACE: Duration = Duration::from_secs(60);

/// Measure moved system calls: bandwidth and latency by message size, Apache's throughput by clients
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
    /// Length of a run, of Apache in whole seconds
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    time: Duration,
    /// Rounds, in each of which every policy has its run at every point
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=1_000))]
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

/// A part of the benchmark, which is one figure of the publication.
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
    /// Bytes of a message, or clients.
    level: usize,
}

/// What the policies did in it.
struct Measured {
    point: Point,
    /// By policy and round.
    values: Vec<Vec<f64>>,
}

/// Measures, and prints what came out.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    let points = options.points()?;
    let policies = options.policies()?;
    let canvas = options.plot.open()?;
    let mut inbox = Inbox::open()?;
    let has_apache = points.iter().any(|point| point.part == Part::Apache);
    let apache = has_apache.then(|| Apache::prepare(options.loops)).transpose()?;
    let bench = Bench { options, policies: &policies, apache: apache.as_ref() };
    let measured = bench.measure(&points, &mut inbox, terminal)?;
    let found = output::results(&policies, &measured, options)?;
    if let Some(canvas) = canvas {
        canvas.draw(&picture::figure(&found), &output::render(&found))?;
    }
    report(&found, options.json, || output::render(&found))
}

impl Options {
    fn points(&self) -> Result<Vec<Point>> {
        let mut parts = self.part.clone();
        parts.sort();
        parts.dedup();
        let hour = Duration::from_secs(3_600);
        let whole = self.time.subsec_nanos() == 0 || !parts.contains(&Part::Apache);
        if !(Duration::from_millis(10)..=hour).contains(&self.time) || !whole {
            return Err(Failure::bad_input(
                format!("a run cannot take {}", format_duration(self.time)),
                "let --time be 10ms to 1h, and whole seconds for Apache",
            ));
        }
        if let Some(size) = self.sizes.iter().find(|size| !(1..=MESSAGE_BYTES_MAX).contains(size)) {
            return Err(Failure::bad_input(
                format!("messages of {size} bytes cannot be measured"),
                format!("let --sizes be 1 to {MESSAGE_BYTES_MAX}"),
            ));
        }
        let sorted = |mut levels: Vec<usize>| {
            levels.sort_unstable();
            levels.dedup();
            levels
        };
        let clients = self.clients.iter().map(|clients| usize::from(*clients)).collect();
        let (sizes, clients) = (sorted(self.sizes.clone()), sorted(clients));
        let levels = |part| if part == Part::Apache { &clients } else { &sizes };
        let points = parts.iter().flat_map(|part| {
            levels(*part).iter().map(|level| Point { part: *part, level: *level })
        });
        Ok(points.collect())
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

/// What every run needs.
struct Bench<'a> {
    options: &'a Options,
    policies: &'a [Policy],
    apache: Option<&'a Apache>,
}

impl Bench<'_> {
    /// Rounds, in each of which every policy has its run at every point, in an order drawn anew.
    fn measure(
        &self,
        points: &[Point],
        inbox: &mut Inbox,
        terminal: &Terminal,
    ) -> Result<Vec<Measured>> {
        let empty = |point: &Point| Measured {
            point: *point,
            values: vec![Vec::new(); self.policies.len()],
        };
        let mut measured: Vec<Measured> = points.iter().map(empty).collect();
        let rounds = self.options.rounds as usize;
        let bar = terminal.progress((rounds * points.len() * self.policies.len()) as u64);
        // Neighbours in time are compared: all policies at a point, then the next point.
        let order_of_points = Schedule::new(points.len(), self.options.seed).take(rounds);
        let mut order_of_policies = Schedule::new(self.policies.len(), !self.options.seed);
        for order in order_of_points {
            for number in order {
                let Measured { point, values } = &mut measured[number];
                for number in order_of_policies.next().unwrap_or_default() {
                    let policy = &self.policies[number];
                    bar.set_message(format!("{point}, {policy}"));
                    let value = self.run(*point, policy, inbox);
                    let value =
                        value.map_err(|failure| failure.during(format!("{point}, {policy}")))?;
                    terminal.say(format_args!("{point}, {policy}: {value}"));
                    values[number].push(value);
                    bar.inc(1);
                }
            }
        }
        bar.finish_and_clear();
        Ok(measured)
    }

    fn run(&self, point: Point, policy: &Policy, inbox: &mut Inbox) -> Result<f64> {
        let plan = match (point.part, self.apache) {
            (Part::Apache, Some(apache)) => {
                apache.plan(policy, point.level, self.options.time, GRACE)?
            }
            (part, _) => conversation(part, policy, point.level, self.options.time)?,
        };
        let outcome = plan.run(&Interposition::new("glibc".parse()?)?, inbox)?;
        let value = match point.part {
            Part::Apache => apache::requests_per_second(&outcome),
            _ => answer(&outcome),
        }?;
        match value > 0.0 && value.is_finite() {
            true => Ok(value),
            false => Err(Failure::failed("nothing was done in the time: let --time be longer")),
        }
    }
}

/// A conversation of two processes, both under the policy.
fn conversation(part: Part, policy: &Policy, bytes: usize, time: Duration) -> Result<Plan> {
    let what = if part == Part::Latency { What::Latency } else { What::Bandwidth };
    let order = Order { what, message_bytes: bytes, warm_up: time / 5, measured: time, port: None };
    Ok(Plan {
        command: policy.conversation(&order)?,
        prepare: None,
        load: None,
        timeout: time + GRACE,
    })
}

/// What the first of the two processes said.
fn answer(outcome: &Outcome) -> Result<f64> {
    let line = outcome.output.lines().next().unwrap_or_default();
    let answer: manycore_bench::conversation::Answer = serde_json::from_str(line)
        .map_err(|error| Failure::failed(format!("the answer '{line}' is none: {error}")))?;
    Ok(answer.value)
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.part {
            Part::Bandwidth => write!(f, "bandwidth, {} bytes", self.level),
            Part::Latency => write!(f, "latency, {} bytes", self.level),
            Part::Apache => write!(f, "Apache, {} clients", self.level),
        }
    }
}

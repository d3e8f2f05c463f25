//! The options of `manycore compare`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use clap::Args;
use humantime::parse_duration;

use crate::metric::Metric;
use crate::rounds::{Limit, fewest};
use crate::trial::{Load, Plan, Ready};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::spec::Spec;
use manycore_launch::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore compare -- kccachetest order -th 8 -rnd 100000
  manycore compare --metric 'rate: ([0-9.]+)' --lock futex,adaptive -- ./bench 8
  manycore compare --load 'memcslap --servers=127.0.0.1:{port}' \\
      -- memcached -p {port} -l 127.0.0.1 -u nobody
  manycore compare --duration 10s --metric 'served: ([0-9]+)' -- ./server --print-counts
  manycore compare --json --fail-if-slower --lock adaptive -- ./tests/load >compare.json
  manycore compare --prepare 'cp -a /var/tmp/db-template {dir}/data' \\
      --ready 'mariadb-admin -S {dir}/sock ping' --timeout 2m --budget 20m \\
      --load 'sysbench oltp_read_write --mysql-socket={dir}/sock --threads=16 --time=10 run' \\
      --metric 'transactions: +[0-9]+ +\\(([0-9.]+) per sec' \\
      -- mariadbd --datadir={dir}/data --socket={dir}/sock --skip-networking

Protocol:
  Each lock, and glibc's own as the base line, runs once to warm up and then once
  in each round, in an order drawn anew from --seed. What counts is the ratio to
  glibc's value of the same round: its Hodges-Lehmann estimate with a 95 % interval
  (Wilcoxon's, widened so that all intervals hold together). There is a winner if
  its interval excludes 1 and it beats the others; there is no difference if the
  intervals include 1 and exclude differences of 20 %.
  Without --runs there are 31 rounds, or as many as fit into --budget.
  Memory is the largest resident set of a process; what is less than this command's
  own cannot be told and is shown as `<`.

Servers:
  With --load, CMD is a server. Each run starts a fresh one, waits until --ready,
  runs the load, and ends the server by SIGTERM (SIGKILL if it does not end within
  --grace). The metric is the load's: its wall time, or what it prints. CPU time and
  memory are the server's.

  --ready CMD             a shell command succeeds (it is tried again and again)
  --ready tcp:HOST:PORT   a connection is accepted; tcp:PORT is on 127.0.0.1
  --ready unix:PATH       a connection is accepted on a socket
  --ready log:REGEX       the server has written something that matches

  In CMD, --load, --ready and --prepare, {dir} is an empty directory and {port} a
  free port of the run. CMD runs in a process group of its own, which is killed
  when the run is over: nothing is left behind.

  With --duration, CMD need not be put under load by somebody else: it is ended by
  SIGTERM after that time, or --load, if there is one, by SIGINT as ^C would do it.

Exit status:
  0   compared, whatever the outcome
  1   a run failed: a program ended with another status than 0 (or --ok-status), was
      not ready or did not end in time, or printed no metric; stderr says under which
      lock. With --fail-if-slower also: a lock is slower, or worse, than glibc's
  2   bad usage, or CMD cannot be run with another lock
";

/// Compare locks in a program: interleaved runs, ratios with intervals, a winner or no difference
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Locks to compare with glibc's own [default: adaptive,hybrid,futex]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    lock: Vec<Spec>,
    /// Runs of each lock, instead of a budget
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: Option<u16>,
    /// Time for all runs together
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration, conflicts_with = "runs")]
    budget: Duration,
    /// The compared quantity: `wall`, or the number in the first group of the last match in the
    /// output
    #[arg(long, value_name = "REGEX", default_value = "wall")]
    pub metric: Metric,
    /// Smaller values of a printed metric are better
    #[arg(long)]
    pub lower_is_better: bool,
    /// Shell command that puts load on CMD, a server
    #[arg(long, value_name = "LOAD")]
    pub load: Option<OsString>,
    /// How to see that the server is ready [default: tcp:{port} where CMD has {port}]
    #[arg(long, value_name = "PROBE", requires = "load")]
    ready: Option<Ready>,
    /// How long the server may take to be ready
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    ready_timeout: Duration,
    /// How long the server may take to end
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub grace: Duration,
    /// Shell command before each run, not measured
    #[arg(long, value_name = "SHELL")]
    prepare: Option<OsString>,
    /// How long one run may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    timeout: Duration,
    /// End the measured program after this time; its output until then counts
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Exit statuses besides 0 that are no failure of the measured program
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    ok_status: Vec<u8>,
    /// Fail with exit status 1 if a lock is slower, or worse, than glibc's
    #[arg(long)]
    pub fail_if_slower: bool,
    /// Show the intervals of all values, too
    #[arg(long)]
    pub wide: bool,
    /// Seed of the order of runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

impl Options {
    /// The base line first, then the requested locks.
    pub fn candidates(&self) -> Result<Vec<Interposition>> {
        let usual = || ["adaptive", "hybrid", "futex"].iter().filter_map(|name| name.parse().ok());
        let mut specs: Vec<Spec> =
            if self.lock.is_empty() { usual().collect() } else { self.lock.clone() };
        specs.retain(|spec| !spec.is_glibc());
        if let Some(index) = (1..specs.len()).find(|&index| specs[..index].contains(&specs[index]))
        {
            let twice = format!("'{}' is named twice", specs[index]);
            return Err(Failure::bad_input(twice, "name each lock once"));
        }
        if specs.is_empty() {
            return Err(Failure::bad_input(
                "glibc is the base line of every comparison",
                "name a lock to compare it with (`manycore locks` lists them)",
            ));
        }
        [Spec::glibc()].into_iter().chain(specs).map(Interposition::new).collect()
    }

    /// What one run is.
    pub fn plan(&self) -> Result<Plan> {
        let load = match &self.load {
            None => None,
            Some(command) => Some(Load {
                command: command.clone(),
                ready: self.probe()?,
                ready_timeout: self.ready_timeout,
                grace: self.grace,
            }),
        };
        Ok(Plan {
            command: self.command.clone(),
            prepare: self.prepare.clone(),
            load,
            timeout: self.timeout,
            ok_status: self.ok_status.clone(),
            duration: self.checked_duration()?,
            grace: self.grace,
        })
    }

    fn checked_duration(&self) -> Result<Option<Duration>> {
        let Some(duration) = self.duration else { return Ok(None) };
        if matches!(self.metric, Metric::Wall) {
            return Err(Failure::bad_input(
                "with --duration every run takes as long",
                "let --metric say which number of its output counts",
            ));
        }
        if duration >= self.timeout {
            return Err(Failure::bad_input(
                format!("a run is given up after {}", humantime::format_duration(self.timeout)),
                "let --timeout be longer than --duration",
            ));
        }
        Ok(Some(duration))
    }

    fn probe(&self) -> Result<Ready> {
        let has_port = |word: &OsStr| word.as_bytes().windows(6).any(|part| part == b"{port}");
        match &self.ready {
            Some(ready) => Ok(ready.clone()),
            None if self.command.iter().any(|word| has_port(word)) => "tcp:{port}".parse(),
            None => Err(Failure::bad_input(
                "nothing says when the server is ready for the load",
                "use {port} in its command, or give --ready CMD|tcp:HOST:PORT|unix:PATH|log:REGEX",
            )),
        }
    }

    /// How long to continue with this many candidates, not counting the base line.
    pub fn limit(&self, candidates: usize, terminal: &Terminal) -> Limit {
        let Some(runs) = self.runs else { return Limit::Budget(self.budget) };
        let (runs, fewest) = (usize::from(runs), fewest(candidates));
        if runs < fewest {
            terminal
                .note(format_args!("too few runs for a verdict: {runs}, and it takes {fewest}"));
        }
        Limit::Runs(runs)
    }
}

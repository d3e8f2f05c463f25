//! `manycore top`: the locks of a program, while it runs.
//!
//! | module | what is in it |
//! |---|---|
//! | `find`, `follow`, `cpu` | programs that keep statistics; polling one of them; its CPU time |
//! | `kernel` | the kernel's locks, interval by interval |
//! | `source` | both, and the program itself if it is started here |
//! | `rows`, `state` | the table; what is shown, and what each key does to it |
//! | `draw`, `detail`, `help`, `screen` | the screen, which is restored however the program ends |
//! | `batch`, `record` | plain text; a line of JSON |
//! | `metrics`, `listen` | the same for Prometheus; and by HTTP |
//!
//! ```
//! use clap::{Args, Command};
//!
//! let command = manycore_top::Options::augment_args(Command::new("top"));
//! let refused = command.try_get_matches_from(["top", "--pid", "that one"]);
//! assert!(refused.is_err(), "a process has a number");
//! ```

mod batch;
mod cpu;
mod detail;
mod draw;
#[cfg(test)]
mod example;
mod find;
mod follow;
mod help;
mod kernel;
mod listen;
mod metrics;
mod record;
mod rows;
mod screen;
mod source;
mod state;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Args;
use humantime::parse_duration;

use listen::Listener;
use manycore_kernel_trace::Means;
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;
use manycore_launch::spec::Spec;
use manycore_launch::target;
use manycore_launch::terminal::{Terminal, print};
use metrics::Metrics;
use rows::{Column, Span};
use source::Source;
use state::{INTERVAL_MAX, INTERVAL_MIN, State};

/// Shown below the options.
fn notes() -> String {
    format!("{NOTES}\n{}", help::KEYS)
}

const NOTES: &str = "\
Examples:
  manycore run --stats -- ./server --port 8080 &
  manycore top                                    (finds it)
  manycore top --pid 1234 -d 2s
  manycore top -- ./batch-job --threads 8         (starts it)
  manycore top --iterations 3 --total --sort held > pictures.txt
  manycore top --json -d 10s >> locks.jsonl       (until the program ends)
  manycore top --listen 9464 --pid 1234           (for Prometheus)

Programs:
  It attaches to what was started by `manycore profile -- CMD` or `manycore run --stats
  -- CMD`: their statistics are read while the program writes them, which costs the
  program nothing more. `manycore run` without --stats keeps none. Children of the
  program count, too. A program that `top` starts has nothing to read; what it prints
  goes to a file that is named at the end.

Exit status:
  0 when somebody quits, and when the program has ended after the last picture that was
  asked for. 2 if there is no program to attach to, or no terminal to draw on.
";

/// Watch a program's locks while it runs: sorted, by interval, down to the calls that wait
#[derive(Args, Debug)]
#[command(after_long_help = notes())]
pub struct Options {
    /// A process of the program; without it, the only program that keeps statistics
    #[arg(long, conflicts_with = "command")]
    pid: Option<u32>,
    /// The program that keeps statistics in this cgroup or below, as a container's
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pid", "command"])]
    cgroup: Option<String>,
    /// Time between two pictures
    #[arg(short = 'd', long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Show the locks of the kernel, too: by the first means that works, or by this one
    #[arg(
        long,
        value_enum,
        value_name = "MEANS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto"
    )]
    kernel: Option<Means>,
    /// What comes first
    #[arg(long, value_enum, default_value_t = Column::Waited)]
    sort: Column,
    /// Begin with all until now, and not with the last interval
    #[arg(long)]
    total: bool,
    /// Print this many pictures as text, and end; no terminal is needed
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,
    /// Print pictures as JSON, a line each: until the program ends, or as many as -n says; no
    /// terminal is needed
    #[arg(long)]
    json: bool,
    /// Let Prometheus read the counts, at http://ADDR/metrics, until the program ends. A port alone
    /// is one of 127.0.0.1, where no other machine can read it
    #[arg(long, value_name = "ADDR", value_parser = listen::address, conflicts_with_all = ["json", "iterations", "total", "sort"])]
    listen: Option<SocketAddr>,
    /// With CMD: lock under the program
    #[arg(long, value_name = "SPEC", default_value = "futex", requires = "command")]
    lock: Spec,
    /// Program to start, and its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

fn interval(text: &str) -> std::result::Result<Duration, String> {
    let interval = parse_duration(text).map_err(|error| error.to_string())?;
    if (INTERVAL_MIN..=INTERVAL_MAX).contains(&interval) {
        return Ok(interval);
    }
    let [least, most] = [INTERVAL_MIN, INTERVAL_MAX].map(humantime::format_duration);
    Err(format!("not from {least} to {most}"))
}

/// Shows a program.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    let times = options.iterations.or(options.json.then_some(u32::MAX));
    if times.is_none() && options.listen.is_none() {
        screen::check()?;
    }
    let mut inbox = Inbox::open()?;
    let listener = options.listen.map(Listener::open).transpose()?;
    let mut source = source(options)?;
    let span = if options.total { Span::Total } else { Span::Interval };
    let owns_program = !options.command.is_empty();
    let mut state = State::new(options.interval, options.sort, span, owns_program);
    let form = if options.json { record::line } else { batch::text };
    let shown = match (listener, times) {
        (Some(listener), _) => {
            terminal.note(format_args!("metrics are at http://{}/metrics", listener.address()));
            serve(&listener, &mut source, &mut state, &mut inbox)
        }
        (None, None) => screen::show(&mut source, &mut state, &mut inbox),
        (None, Some(times)) => print_pictures(times, form, &mut source, &mut state, &mut inbox),
    };
    let output = source.end();
    if let Some(output) = output? {
        terminal.note(format_args!("the program's output is in {}", output.display()));
    }
    shown
}

fn source(options: &Options) -> Result<Source> {
    let kernel = options.kernel;
    if options.command.is_empty() {
        return Source::attach(find::program(options.pid, options.cgroup.as_deref())?, kernel);
    }
    target::check(&options.command)?;
    if options.lock.is_glibc() {
        return Err(Failure::bad_input(
            "nothing is counted where glibc's own lock is left in place",
            "watch it with `--lock futex`, which does what glibc's mutex does",
        ));
    }
    Source::start(&options.command, &Interposition::new(options.lock.clone())?, kernel)
}

/// Each picture shows an interval: the first is printed at the end of the first interval.
fn print_pictures(
    times: u32,
    form: fn(&State) -> String,
    source: &mut Source,
    state: &mut State,
    inbox: &mut Inbox,
) -> Result<()> {
    let mut rest = source.sample(state, inbox)?;
    for _ in 0..times {
        if state.ended.is_none() {
            wait(Instant::now() + state.interval.max(rest), source, inbox)?;
            rest = source.sample(state, inbox)?;
        }
        print(&form(state))?;
        if state.ended.is_some() {
            break;
        }
    }
    Ok(())
}

/// Serves the figures of each interval to every client that asks, until the program ends.
fn serve(
    listener: &Listener,
    source: &mut Source,
    state: &mut State,
    inbox: &mut Inbox,
) -> Result<()> {
    let mut metrics = Metrics::default();
    loop {
        let rest = source.sample(state, inbox)?;
        if let Some(pictures) = &state.pictures {
            metrics.take(pictures, state.kernel.as_ref());
            listener.show(&metrics);
        }
        if state.ended.is_some() {
            return Ok(());
        }
        wait(Instant::now() + state.interval.max(rest), source, inbox)?;
    }
}

/// Waits until then, or until the program has ended.
fn wait(until: Instant, source: &mut Source, inbox: &mut Inbox) -> Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || source.has_ended(inbox)? {
            return Ok(());
        }
        std::thread::sleep(left.min(screen::TURN));
        source.look_after();
        if let Some(arrived) = inbox.take() {
            return Err(Failure::Interrupted(arrived.signal()));
        }
    }
}

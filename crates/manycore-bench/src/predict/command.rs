//! `manycore predict`: a profile's locks on a larger machine.

use std::path::PathBuf;
use std::time::Duration;

use crate::predict::{self, Row, Usage};
use clap::Args;
use humantime::parse_duration;
use manycore_measure::Results;
use manycore_profile::command::joined;
use manycore_profile::profile::read;
use manycore_profile::profile::{Held, Lock, Origin, Profile};

use crate::front::{SimulatorOptions, failed_locks, print_results, say_troubles};
use crate::machines;
use crate::mix::USUAL_DATA;
use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::Terminal;

/// The locks that are tried in addition to the program's own: learning, queueing, and queueing by
/// socket.
const OTHERS: [&str; 3] = ["adaptive", "mcs", "hmcs"];

const NOTES: &str = "\
Examples:
  manycore profile --json prof.json -- ./server --threads 8
  manycore predict prof.json --machine xeon-8180-8x28x2
  manycore predict prof.json --machine epyc-2x96 --threads 16,64,192 --lock cna,c-bo-mcs
  manycore predict prof.json --machine ./here.toml --json

The model:
  Every simulated thread does what a thread of the program did on average: it takes
  the locks that were held longest as often as that did, holds them as long, and
  computes or sleeps in between. More threads mean more of the same work, each on a
  CPU of its own.
  It knows the locks and the data that moves with them: --data cache lines, which
  no profile shows. What else may keep the program from scaling (memory, the kernel,
  I/O, locks held while others are taken) is not in it: it tells where the locks end,
  not whether anything else ends earlier.

Columns:
  1, 2, 4 ...   throughput over that of one thread with the program's own lock
  range         of the most: with latencies x0.7 and x1.4, lines held for 0 and 150
                cycles, and locks held for as long as the samples allow, at least x0.8
                and x1.25
  reached at    the threads from which on less than a tenth is gained

Exit status:
  0   predicted
  1   a lock got stuck or did not exclude; stderr says which. The others are printed
  2   FILE is no profile, or has no lock that was held, or bad usage
";

/// Model a profile's locks on a larger machine: where they would stop scaling, and with which lock
/// they would not
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// What `manycore profile --json` has written
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The machine: a name of `manycore machines`, or the file of a model
    #[arg(long, value_name = "NAME")]
    machine: String,
    /// Locks to try in addition to the program's own [default: adaptive,mcs,hmcs]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    lock: Vec<String>,
    /// Numbers of threads, each on as many CPUs [default: powers of two, and all CPUs]
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    threads: Vec<u32>,
    /// Simulated time that is counted [default: 2 ms to 20 s, by the workload]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Cache lines of data that each section reads and writes
    #[arg(long, value_name = "N", default_value_t = USUAL_DATA)]
    data: u32,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pool: SimulatorOptions,
}

/// Predicts, and prints it.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    let profile = read::from_file(&options.file)?;
    let machine = machines::find(&options.machine)?;
    say_what_is_left_out(&profile, terminal);
    let title = format!("Model of {} on {} (simulated)", joined(&profile.command), machine.name);
    let settings = predict::Options {
        machine,
        usage: usage(&profile, options.data).map_err(|why| about(options, why))?,
        locks: locks(&profile.lock, &options.lock, terminal),
        threads: options.threads.clone(),
        duration: options.duration,
        seed: options.seed,
        pool: options.pool.start(terminal)?,
    };
    let prediction = predict::run(&settings)?;
    say_troubles(&settings.pool, terminal);
    let results = Results::new(prediction.found.measurements.clone());
    print_results(&results, options.json, &predict::render(&prediction, &title))?;
    failed_locks(&prediction.found.failures)
}

/// Tells that locks of the program's own making are in no model, because their acquisitions and
/// hold times are unknown.
fn say_what_is_left_out(profile: &Profile, terminal: &Terminal) {
    let futexes = || profile.locks.iter().filter(|lock| !lock.is_counted());
    let Some(most) = futexes().max_by_key(|lock| lock.wait.total_ns) else { return };
    let waited = futexes().map(|lock| lock.wait.total_ns).sum::<u64>() as f64 / 1e9;
    terminal.note(format_args!(
        "left out: locks of the program's own, for which threads slept {waited:.3} s, most of it for {}: how often they \
         are taken, and for how long, no thread has seen",
        most.short
    ));
}

fn about(options: &Options, why: &str) -> Failure {
    Failure::bad_input(
        format!("'{}' cannot be modelled: {why}", options.file.display()),
        "profile it again with this version's `manycore profile --json FILE`",
    )
}

/// The lock that the program had, then others.
fn locks(own: &str, asked: &[String], terminal: &Terminal) -> Vec<String> {
    let (own, parameters) = own.split_once(':').unwrap_or((own, ""));
    if !parameters.is_empty() {
        terminal.note(format_args!("{own} is simulated as it usually is, without '{parameters}'"));
    }
    let others: Vec<String> =
        if asked.is_empty() { OTHERS.map(str::to_owned).to_vec() } else { asked.to_vec() };
    let mut locks = vec![own.to_owned()];
    for lock in others {
        if !locks.contains(&lock) {
            locks.push(lock);
        }
    }
    locks
}

/// What the model needs of a profile.
fn usage(profile: &Profile, data: u32) -> std::result::Result<Usage, &'static str> {
    let host = profile.host.as_ref().ok_or("it does not say how many CPUs the host had")?;
    let cpu = &profile.cpu;
    let seen = |lock: &&Lock| lock.origin != Origin::Rest && lock.is_counted();
    Ok(Usage {
        threads: threads(profile),
        cpus: host.cpus,
        wall: profile.wall,
        busy: cpu.kernel + cpu.program,
        waiting: cpu.lock_spin + cpu.lock_wait,
        ready: cpu.ready,
        data,
        locks: profile.locks.iter().filter(seen).map(row).collect(),
    })
}

fn row(lock: &Lock) -> Row {
    let ns = |ns: Option<u64>| ns.map(|ns| ns as f64);
    // The measured mean, limited to possible values.
    let mean = lock.held_ns().map(|held| held / lock.acquired.max(1) as f64);
    let of_total = |held: &Held, end: u64| end as f64 / held.total_ns.max(1) as f64;
    let hold_range = lock
        .held
        .as_ref()
        .map_or((1.0, 1.0), |held| (of_total(held, held.low_ns), of_total(held, held.high_ns)));
    Row {
        name: lock.name.clone(),
        objects: lock.objects,
        acquired: lock.acquired,
        shared: (lock.kind == "rwlock").then_some(lock.shared),
        hold_ns: mean,
        hold_range,
        hold_p99_ns: ns(lock.hold.p99_ns),
        hottest: lock.hottest_share,
    }
}

/// The number of threads that did the program's work at the same time. A thread that took few locks
/// only started the others, and waited for them. Among the threads that took many locks, some may
/// have started after others had ended.
fn threads(profile: &Profile) -> u32 {
    const PART: u64 = 20;
    let at_a_time =
        profile.processes.iter().fold(0, |sum: u32, process| sum.saturating_add(process.threads));
    // Without the one that stands for all that are not listed.
    let listed = || profile.threads.iter().filter(|thread| thread.tid != 0);
    let most = listed().map(|thread| thread.acquired).max().unwrap_or_default();
    let is_idle = |acquired: u64| acquired.saturating_mul(PART) < most;
    let (idle, busy): (Vec<u64>, Vec<u64>) =
        listed().map(|thread| thread.acquired).partition(|acquired| is_idle(*acquired));
    match busy.len() as u32 {
        0 => at_a_time,
        busy => busy.min(at_a_time.saturating_sub(idle.len() as u32).max(1)),
    }
}

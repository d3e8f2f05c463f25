//! One slice: threads contend for locks for a short time, and are counted.
//!
//! # Phases
//!
//! All threads start together and run through a warm-up. Then the counters are read, and read again
//! when the time is over, each time together with the clock. The measurement is the difference of
//! the two readings, so threads that start or end late do not matter.
//!
//! # Ends in time
//!
//! The order to stop is a flag that threads read between sections. A thread that waits for a lock
//! reads it only after it has got the lock, which under a strictly first-in-first-out lock with
//! more threads than CPUs can take seconds. So the end is waited for no longer than
//! [`Settings::drain`]; the counts are known by then. Threads that have not ended are reported as
//! [`stuck`](Slice::stuck) and are left behind: the caller ends the process.
//!
//! # Waits
//!
//! Reading a clock twice costs as much as a short section, so only one acquisition of
//! [`Settings::sample`] is timed.

mod arena;
mod plan;
mod stage;
mod thread;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::contender::Contender;
use crate::mix::Mix;
use crate::waits::Waits;
use crate::work::Pace;
use arena::{Arena, Course, Locks};
pub(crate) use plan::Step;
pub(crate) use stage::{Phase, Stage};
pub(crate) use thread::{Outcome, Runner};

/// The most threads that a slice may have.
pub(crate) const MOST_THREADS: u32 = 4_096;

/// Which CPUs the threads run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pinning {
    /// Each thread has a CPU of its own if there are enough; otherwise the scheduler places them.
    Auto,
    /// Wherever the scheduler puts them.
    None,
    /// Each on one CPU, in turn.
    Each,
}

/// What runs, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// How many threads.
    pub threads: u32,
    /// What they do.
    pub mix: Mix,
    /// Which CPUs the threads run on.
    pub pinning: Pinning,
    /// Time before counting starts.
    pub warm_up: Duration,
    /// Time that is counted.
    pub measured: Duration,
    /// How long to wait for the end of the threads.
    pub drain: Duration,
    /// One wait in `sample` is timed. Odd numbers meet all lengths of a
    /// [`Length`](crate::work::Length) in turn.
    pub sample: u32,
    /// How lengths become work.
    pub pace: Pace,
    /// The seed for lengths and for the choice of locks.
    pub seed: u64,
}

/// What a slice measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// The number of sections of each thread in the counted time.
    pub counts: Vec<u64>,
    /// The time that passed.
    pub elapsed_ns: f64,
    /// How long threads waited for their locks.
    pub waits: Waits,
    /// The number of threads that had not ended when the drain was over.
    pub stuck: u32,
}

impl Slice {
    /// Sections a second, over all threads. If there was no section, half a section is assumed.
    pub fn throughput(&self) -> f64 {
        throughput(&self.counts, self.elapsed_ns)
    }

    /// The number of sections of the busiest thread over that of the least busy one. A thread
    /// without any counts as if it had one.
    pub fn fairness(&self) -> f64 {
        fairness(&self.counts)
    }
}

/// The operations of all threads a second, from each thread's operations in this time: see
/// [`Slice::throughput`].
pub(crate) fn throughput(counts: &[u64], elapsed_ns: f64) -> f64 {
    (counts.iter().sum::<u64>() as f64).max(0.5) / (elapsed_ns / 1e9)
}

/// The operations of the busiest thread over those of the least busy: see [`Slice::fairness`].
pub(crate) fn fairness(counts: &[u64]) -> f64 {
    let most = counts.iter().max().copied().unwrap_or(1).max(1);
    let fewest = counts.iter().min().copied().unwrap_or(1).max(1);
    most as f64 / fewest as f64
}

/// Runs one slice. The error, in one line, names the lock's mistake or the machine's refusal.
pub fn run<C: Contender>(settings: &Settings) -> Result<Slice, String> {
    debug_assert!(settings.mix.locks.iter().all(|lock| lock.shared.is_none()), "simulated only");
    measure(Arc::new(Arena::<C>::new(&settings.mix.locks)), settings)
}

fn measure(locks: Arc<dyn Locks>, settings: &Settings) -> Result<Slice, String> {
    let course = Arc::new(Course::new(settings.threads));
    let outcomes = start(&locks, &course, settings)?;
    course.barrier.wait();
    std::thread::sleep(settings.warm_up);
    course.set_phase(Phase::Measure);
    let first = course.read();
    std::thread::sleep(settings.measured);
    let last = course.read();
    course.set_phase(Phase::Stop);

    let stopped = Instant::now();
    let ended = gather(&outcomes, settings, stopped);
    let mut slice = Slice {
        counts: last.counts.iter().zip(&first.counts).map(|(last, first)| last - first).collect(),
        elapsed_ns: last.time.duration_since(first.time).as_nanos() as f64,
        waits: Waits::default(),
        stuck: settings.threads - ended.len() as u32,
    };
    let ns_per_tick = slice.elapsed_ns / (last.ticks.wrapping_sub(first.ticks)) as f64;
    for outcome in &ended {
        slice.waits.add_ticks(&outcome.waits, ns_per_tick);
    }
    // A stuck thread has waited at least since the end of the slice; for how much longer is
    // unknown.
    if slice.stuck > 0 {
        slice.waits.add(stopped.elapsed().as_nanos() as u64, u64::from(slice.stuck));
    }
    verify(&*locks, &ended, slice.stuck)?;
    Ok(slice)
}

/// The error for a thread that panicked; its message is on standard error.
const PANICKED: &str = "a thread of the benchmark panicked";

fn start(
    locks: &Arc<dyn Locks>,
    course: &Arc<Course>,
    settings: &Settings,
) -> Result<mpsc::Receiver<Outcome>, String> {
    let (sender, outcomes) = mpsc::channel();
    let cpus = crate::cpus::allowed();
    let pinned = match settings.pinning {
        Pinning::Auto => settings.threads as usize <= cpus.len(),
        Pinning::None => false,
        Pinning::Each => true,
    };
    for index in 0..settings.threads as usize {
        let cpu = pinned.then(|| cpus[index % cpus.len()]);
        let (locks, course) = (Arc::clone(locks), Arc::clone(course));
        let (runner, sender) = (Runner::new(index, settings), sender.clone());
        let run = move || {
            let work = || on_cpu(cpu, runner, &*locks, &course);
            let outcome = catch_unwind(AssertUnwindSafe(work));
            // The receiver is gone if the slice is: the report is not needed then.
            drop(sender.send(outcome.unwrap_or_else(|_| Outcome::failed(PANICKED.into()))));
        };
        let spawned = std::thread::Builder::new().stack_size(256 << 10).spawn(run);
        if let Err(error) = spawned {
            return Err(format!("cannot start thread {index} of {}: {error}", settings.threads));
        }
    }
    Ok(outcomes)
}

/// Runs a thread of the slice once all of them are there.
fn on_cpu(cpu: Option<usize>, runner: Runner, locks: &dyn Locks, course: &Course) -> Outcome {
    let pinned = cpu.map(crate::cpus::pin);
    course.barrier.wait();
    let outcome = locks.run(course, runner);
    match pinned {
        Some(Err(error)) => Outcome::failed(format!("cannot keep a thread on its CPU: {error}")),
        _ => outcome,
    }
}

/// The outcomes of all threads that end in time.
fn gather(
    outcomes: &mpsc::Receiver<Outcome>,
    settings: &Settings,
    stopped: Instant,
) -> Vec<Outcome> {
    let mut ended = Vec::new();
    while ended.len() < settings.threads as usize {
        match outcomes.recv_timeout(settings.drain.saturating_sub(stopped.elapsed())) {
            Ok(outcome) => ended.push(outcome),
            Err(_) => break,
        }
    }
    ended
}

/// Whether the lock did what a lock is for.
fn verify(locks: &dyn Locks, ended: &[Outcome], stuck: u32) -> Result<(), String> {
    if let Some(error) = ended.iter().find_map(|outcome| outcome.error.as_deref()) {
        return Err(error.to_string());
    }
    let violations: u64 = ended.iter().map(|outcome| outcome.violations).sum();
    if violations > 0 {
        return Err(format!("the lock let two threads in at once, {violations} times"));
    }
    if stuck == 0 {
        let written: u64 = ended.iter().map(|outcome| outcome.written).sum();
        let found = locks.written();
        if written != found {
            return Err(format!(
                "the lock lost updates: {written} were made and {found} were found"
            ));
        }
    }
    Ok(())
}

//! One slice: threads use a set for a short time, or for this many operations, and are counted.
//!
//! It begins with an empty set, which the first thread fills; a large one is kept for the next
//! slice. Warm-up, reading of counters and the end are those of a [slice of locks](crate::slice).
//! At the end what is in the set must be what the threads were told.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use manycore::sync::{CachePadded, clock};
use manycore_traits::SetHandle;
use serde::{Deserialize, Serialize};

use super::contenders::{self, AnySet};
use super::peers::{self, Peer};
use super::task::{Operation, Operations, Task};
use crate::counts::Counts;
use crate::footprint;
use crate::slice::{self, Pinning};
use crate::waits::{self, Waits};
use crate::worker::{Executor, Order};

/// When a slice is over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Bound {
    /// After this time, and before it a fifth of it that is not counted.
    Time(Duration),
    /// When each thread has done this many operations.
    Operations(u64),
}

/// What runs, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub task: Task,
    pub bound: Bound,
    pub pinning: Pinning,
    /// How long to wait for the end of the threads.
    pub drain: Duration,
    /// One operation in this many is timed.
    pub sample: u32,
}

impl Order for Settings {
    const NAME: &'static str = "set";
    type Answer = Slice;

    /// With a large set to fill first.
    fn time_max(&self) -> Duration {
        let limit = match self.bound {
            Bound::Time(measured) => 2 * measured + self.drain,
            Bound::Operations(_) => Duration::from_secs(600),
        };
        limit + Duration::from_secs(120)
    }
}

/// What a slice measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Slice {
    /// Operations that each thread did in the time that was counted.
    pub counts: Vec<u64>,
    pub elapsed_ns: f64,
    /// How long operations took.
    pub latency: Waits,
    /// Bytes for each key, when the set has been filled and nobody has used it yet.
    pub bytes_per_key: f64,
    /// Bytes beyond that, at the end of the time that was counted: what waits to be freed, logs,
    /// handles.
    pub garbage: f64,
    /// What the mechanism has counted while threads worked, warm-up and all, for each operation.
    pub statistics: BTreeMap<String, f64>,
}

impl Slice {
    /// Operations a second, over all threads. A slice without one counts as half a one.
    pub fn throughput(&self) -> f64 {
        slice::throughput(&self.counts, self.elapsed_ns)
    }

    /// Operations of the busiest thread over those of the least busy; one without any counts as if
    /// it had had one.
    pub fn fairness(&self) -> f64 {
        slice::fairness(&self.counts)
    }
}

/// Runs slices, in a worker. Beside manycore's sets and those of [`peers`], there are these.
pub fn executor(more: &'static [Peer]) -> Executor {
    let mut kept = None;
    Executor::new(move |settings| run(&settings, more, &mut kept))
}

/// Runs one. The error, in one line, says what the set did wrong or what the machine refused.
fn run(settings: &Settings, more: &[Peer], kept: &mut Option<Filled>) -> Result<Slice, String> {
    let task = &settings.task;
    let filled = match kept.take() {
        Some(filled) if filled.is_for(task) => filled,
        _ => Filled::new(task, more)?,
    };
    let slice = measure(&filled, settings)?;
    *kept = task.keys.is_many().then_some(filled);
    Ok(slice)
}

/// A set with its first keys.
pub(crate) struct Filled {
    set: Arc<dyn AnySet>,
    task: Task,
    bytes_per_key: f64,
}

impl Filled {
    fn new(task: &Task, more: &[Peer]) -> Result<Self, String> {
        let keys = task.keys.first();
        let before = footprint::in_use();
        let ours = contenders::native::make(task);
        let set = ours.or_else(|| peers::make(task, more));
        let set = set.ok_or_else(|| format!("there is no {} by {}", task.structure, task.sync))?;
        let mut handle = set.handle();
        keys.iter().for_each(|key| _ = handle.insert(*key));
        drop(handle);
        let used = footprint::in_use().saturating_sub(before);
        let bytes_per_key = used as f64 / keys.len().max(1) as f64;
        Ok(Self { set: Arc::from(set), task: task.clone(), bytes_per_key })
    }

    /// Whether a task begins with what is there.
    fn is_for(&self, task: &Task) -> bool {
        let same = |a: &Task, b: &Task| a.structure == b.structure && a.sync == b.sync;
        same(&self.task, task) && self.task.keys == task.keys
    }
}

/// What one thread does until it is told to stop.
fn work(set: &dyn AnySet, shared: &Shared, settings: &Settings, worker: &mut Worker) {
    let limit = match settings.bound {
        Bound::Time(_) => u64::MAX,
        Bound::Operations(count) => count,
    };
    let Worker { index, operations, outcome } = worker;
    let mut handle = set.handle();
    let count = &shared.counts[*index as usize];
    let mut until_sample = settings.sample;
    // Relaxed, both: see `Shared::read` and where it is set.
    while outcome.operations < limit && !shared.stop.load(Ordering::Relaxed) {
        let operation = operations.draw();
        until_sample -= 1;
        if until_sample == 0 {
            until_sample = settings.sample;
            let begin = clock::now();
            outcome.added += apply(&mut *handle, operation);
            outcome.latency.saturating_record(clock::now().saturating_sub(begin));
        } else {
            outcome.added += apply(&mut *handle, operation);
        }
        outcome.operations += 1;
        count.store(outcome.operations, Ordering::Relaxed); // Relaxed: as above
    }
}

/// What the threads of a slice share, beside the set.
struct Shared {
    stop: AtomicBool,
    start: Barrier,
    counts: Box<[CachePadded<AtomicU64>]>,
}

/// A thread, and what it is going to do.
struct Worker {
    index: u32,
    operations: Operations,
    outcome: Outcome,
}

/// What a thread has to tell when it ends.
struct Outcome {
    latency: Histogram<u64>,
    /// Keys that it has put in, less those that it has taken out.
    added: i64,
    operations: u64,
    ended: Instant,
    error: Option<String>,
}

/// Counters at a moment.
struct Reading {
    time: Instant,
    ticks: u64,
    counts: Vec<u64>,
}

impl Shared {
    fn read(&self) -> Reading {
        // Relaxed: each counter is its thread's; nothing else is read by it.
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        Reading { time: Instant::now(), ticks: clock::now(), counts }
    }
}

fn measure(filled: &Filled, settings: &Settings) -> Result<Slice, String> {
    let Filled { set, bytes_per_key, .. } = filled;
    let (task, bytes_per_key) = (&settings.task, *bytes_per_key);
    let counts = Counts::read(|visit| set.statistics(visit));
    let before = footprint::in_use();
    let shared = Arc::new(Shared {
        stop: AtomicBool::new(false),
        start: Barrier::new(task.threads as usize + 1),
        counts: (0..task.threads).map(|_| CachePadded::default()).collect(),
    });
    let outcomes = start(set, &shared, settings)?;
    // What workers keep for themselves; those that have ended keep nothing.
    let own = match settings.bound {
        Bound::Time(_) => footprint::in_use() - before,
        Bound::Operations(_) => 0,
    };
    let first = match settings.bound {
        Bound::Time(measured) => {
            shared.start.wait();
            std::thread::sleep(measured / 5);
            let first = shared.read();
            std::thread::sleep(measured);
            first
        }
        // Before the start: threads may have done all of their operations when this one runs again.
        Bound::Operations(_) => {
            let first = shared.read();
            shared.start.wait();
            first
        }
    };
    let mut ended = match settings.bound {
        Bound::Time(_) => Vec::new(),
        Bound::Operations(_) => gather(&outcomes, settings),
    };
    let last = shared.read();
    let after = footprint::in_use();
    shared.stop.store(true, Ordering::Relaxed); // Relaxed: a thread that sees it later works a little longer
    if ended.is_empty() {
        ended = gather(&outcomes, settings);
    }
    verify(&**set, &ended, task)?;

    let added: i64 = ended.iter().map(|outcome| outcome.added).sum();
    let operations: u64 = ended.iter().map(|outcome| outcome.operations).sum();
    let until = match settings.bound {
        Bound::Time(_) => last.time,
        Bound::Operations(_) => ended.iter().map(|o| o.ended).max().unwrap_or(last.time),
    };
    let ns_per_tick = last.time.duration_since(first.time).as_nanos() as f64
        / last.ticks.wrapping_sub(first.ticks).max(1) as f64;
    let mut slice = Slice {
        counts: last.counts.iter().zip(&first.counts).map(|(last, first)| last - first).collect(),
        elapsed_ns: until.duration_since(first.time).as_nanos() as f64,
        bytes_per_key,
        garbage: after as f64 - (before + own) as f64 - added as f64 * bytes_per_key,
        ..Slice::default()
    };
    ended.iter().for_each(|outcome| slice.latency.add_ticks(&outcome.latency, ns_per_tick));
    slice.statistics = Counts::read(|visit| set.statistics(visit)).since(&counts, operations);
    Ok(slice)
}

fn start(
    set: &Arc<dyn AnySet>,
    shared: &Arc<Shared>,
    settings: &Settings,
) -> Result<mpsc::Receiver<Outcome>, String> {
    let (sender, outcomes) = mpsc::channel();
    let cpus = crate::cpus::allowed();
    let threads = settings.task.threads;
    let pinned = match settings.pinning {
        Pinning::Auto => threads as usize <= cpus.len(),
        Pinning::None => false,
        Pinning::Each => true,
    };
    let ranks = settings.task.keys.ranks();
    for index in 0..threads {
        let cpu = pinned.then(|| cpus[index as usize % cpus.len()]);
        let (set, shared) = (Arc::clone(set), Arc::clone(shared));
        let (settings, sender) = (settings.clone(), sender.clone());
        let operations = settings.task.operations(index, &ranks);
        // Here and not there: what a worker keeps for itself is none of the set's garbage.
        let mut worker = Worker { index, operations, outcome: Outcome::new() };
        let run = move || {
            let pinned = cpu.map(crate::cpus::pin);
            if let Some(Err(error)) = pinned {
                worker.outcome.error = Some(format!("cannot keep a thread on its CPU: {error}"));
            }
            shared.start.wait();
            let work = || work(&*set, &shared, &settings, &mut worker);
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                worker.outcome.error = Some("a thread of the benchmark panicked".to_owned());
            }
            worker.outcome.ended = Instant::now();
            // The receiver is gone if the slice is: nobody wants to know then.
            drop(sender.send(worker.outcome));
        };
        let spawned = std::thread::Builder::new().stack_size(256 << 10).spawn(run);
        spawned.map_err(|error| format!("cannot start thread {index} of {threads}: {error}"))?;
    }
    Ok(outcomes)
}

impl Outcome {
    fn new() -> Self {
        let (latency, ended) = (waits::recorder(), Instant::now());
        Self { latency, added: 0, operations: 0, ended, error: None }
    }
}

/// Does an operation; returns how many keys there are more.
#[inline]
pub(crate) fn apply(handle: &mut dyn SetHandle<u64>, operation: Operation) -> i64 {
    match operation {
        Operation::Contains(key) => {
            std::hint::black_box(handle.contains(&key));
            0
        }
        Operation::Insert(key) => i64::from(handle.insert(key)),
        Operation::Remove(key) => -i64::from(handle.remove(&key)),
    }
}

/// The outcomes of all threads that end in time: for a count of operations, whatever time that
/// takes.
fn gather(outcomes: &mpsc::Receiver<Outcome>, settings: &Settings) -> Vec<Outcome> {
    let begin = Instant::now();
    let next = |_| match settings.bound {
        Bound::Time(_) => {
            outcomes.recv_timeout(settings.drain.saturating_sub(begin.elapsed())).ok()
        }
        Bound::Operations(_) => outcomes.recv().ok(),
    };
    (0..settings.task.threads).map_while(next).collect()
}

/// The largest range whose keys are all looked up at the end.
const LOOKED_UP: u64 = 200_000;

/// Whether everybody came back, and the set has as many keys as the threads were told.
fn verify(set: &dyn AnySet, ended: &[Outcome], task: &Task) -> Result<(), String> {
    if let Some(error) = ended.iter().find_map(|outcome| outcome.error.as_deref()) {
        return Err(error.to_owned());
    }
    let stuck = task.threads as usize - ended.len();
    if stuck > 0 {
        return Err(format!(
            "{stuck} of {} threads did not come back from an operation",
            task.threads
        ));
    }
    if task.keys.range <= LOOKED_UP {
        let mut handle = set.handle();
        let found = (0..task.keys.range).filter(|key| handle.contains(key)).count() as i64;
        let told =
            task.keys.initial as i64 + ended.iter().map(|outcome| outcome.added).sum::<i64>();
        if found != told {
            return Err(format!("the set has {found} keys, and should have {told}"));
        }
    }
    Ok(())
}

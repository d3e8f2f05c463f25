//! One mechanism for a short time, in a process of its own: threads update trees, and their
//! operations are counted. At the end the trees must have the right contents.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::any_map::AnyMap;
use super::load::{Load, Outcome, Stage, Worker};
use super::mechanism;
use crate::counts::Counts;
use crate::footprint;
use crate::slice::Slice;
use crate::waits::Waits;
use crate::work::work;
use crate::worker::{Executor, Order};

/// One operation of this many is timed: two reads of a clock cost as much as a short operation.
const SAMPLE: u64 = 17;

/// What runs, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub mechanism: String,
    pub threads: u32,
    /// The share of operations that update, in percent.
    pub update: f64,
    pub load: Load,
    /// The counted time, which begins after an uncounted fifth of it. Not used if the load gives
    /// the number of operations.
    pub duration: Duration,
    /// Iterations of work between two operations.
    pub iterations: u32,
}

impl Order for Settings {
    const NAME: &'static str = "rmap";
    type Answer = Round;

    /// With many intervals to put in first.
    fn time_max(&self) -> Duration {
        let limit = match self.load.operations {
            None => 2 * self.duration,
            Some(_) => Duration::from_secs(600),
        };
        limit + Duration::from_secs(120)
    }
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Round {
    pub slice: Slice,
    /// Bytes for each interval of the filled trees; `None` if these are empty.
    pub bytes_per_interval: Option<f64>,
    /// Bytes beyond those of the filled trees, at the end: the threads' own intervals, deferred
    /// operations, logs.
    pub memory: f64,
    /// The most updates that were deferred at a time.
    pub put_off_max: u64,
    /// The mechanism's own counts while threads worked, including the warm-up, for each operation.
    pub statistics: BTreeMap<String, f64>,
}

/// Runs slices, in a worker.
pub(crate) fn executor() -> Executor {
    Executor::new(|settings| run(&settings))
}

/// Runs one slice. The error describes the mechanism's mistake, or says that no mechanism has this
/// name.
pub(crate) fn run(settings: &Settings) -> Result<Round, String> {
    let Settings { mechanism, load, .. } = settings;
    let map = mechanism::make_here(mechanism, load.shape, load.trees as usize);
    let map = map.ok_or_else(|| format!("there is no `{mechanism}`"))?;
    settings.measure(&*map)
}

const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

struct Here {
    phase: AtomicU8,
    start: Instant,
    iterations: u32,
    tend_ticks: u64,
}

impl Stage for Here {
    fn counted(&self) -> Option<bool> {
        // Relaxed: an order that comes a little later does no harm.
        match self.phase.load(Ordering::Relaxed) {
            STOP => None,
            phase => Some(phase == MEASURE),
        }
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn outside(&self, _updates: bool) {
        std::hint::black_box(work(1, self.iterations));
    }

    fn tend_ticks(&self) -> u64 {
        self.tend_ticks
    }

    fn memory(&self) -> u64 {
        footprint::in_use()
    }
}

impl Here {
    /// Lets threads warm up, counts for this time, and stops them; returns the counted time.
    fn let_pass(&self, time: Duration) -> Duration {
        std::thread::sleep(time / 5);
        let begin = Instant::now();
        self.phase.store(MEASURE, Ordering::Relaxed); // Relaxed: as in `counted`
        std::thread::sleep(time);
        self.phase.store(STOP, Ordering::Relaxed); // Relaxed: as in `counted`
        begin.elapsed()
    }
}

impl Settings {
    fn measure(&self, map: &dyn AnyMap) -> Result<Round, String> {
        let load = &self.load;
        let empty = footprint::in_use();
        let filled = load.fill(map);
        let used = footprint::in_use().saturating_sub(empty) as f64;
        let intervals = load.filled(map);
        let stage = Here {
            phase: AtomicU8::new(if load.operations.is_some() { MEASURE } else { WARM_UP }),
            start: Instant::now(),
            iterations: self.iterations,
            tend_ticks: ticks(load.tend),
        };
        let trees = load.trees_drawn();
        // Allocated before the count of memory: a worker's private data are not the mechanism's.
        let outcomes = (0..self.threads).map(|_| Outcome::new()).collect();
        let counts = Counts::read(|visit| map.statistics(visit));
        let before = footprint::in_use();
        let (elapsed_ns, ended) = self.let_work(map, &stage, &trees, outcomes)?;
        let mut slice = Slice { counts: Vec::new(), elapsed_ns, waits: Waits::default(), stuck: 0 };
        for outcome in &ended {
            slice.counts.push(outcome.operations);
            slice.waits.add_ticks(&outcome.times, 1.0);
        }
        // The first thread that ended saw all others at work.
        let memory = ended.iter().map(|outcome| outcome.memory).max().unwrap_or(before);
        // Before the check of the contents, which applies everything.
        let put_off_max = map.put_off_max();
        let done = ended.iter().map(|outcome| outcome.all).sum();
        let statistics = Counts::read(|visit| map.statistics(visit)).since(&counts, done);
        load.verify(map)?;
        drop(filled);
        Ok(Round {
            slice,
            bytes_per_interval: (intervals > 0).then(|| used / intervals as f64),
            memory: memory as f64 - before as f64,
            put_off_max,
            statistics,
        })
    }

    /// The counted nanoseconds, and the threads' results in them.
    fn let_work(
        &self,
        map: &dyn AnyMap,
        stage: &Here,
        trees: &[u64],
        outcomes: Vec<Outcome>,
    ) -> Result<(f64, Vec<Outcome>), String> {
        let barrier = Barrier::new(self.threads as usize + 1);
        std::thread::scope(|scope| {
            let (barrier, load, update) = (&barrier, &self.load, self.update);
            let workers: Vec<_> = (0..self.threads)
                .zip(outcomes)
                .map(|(me, outcome)| {
                    let worker = Worker { me, update, sample: SAMPLE, trees, outcome };
                    scope.spawn(move || {
                        barrier.wait();
                        load.run(map, worker, stage)
                    })
                })
                .collect();
            // Before the start: threads may have done all of their operations when this one runs
            // again.
            let start = stage.now();
            barrier.wait();
            let counted = match load.operations {
                Some(_) => None,
                None => Some(stage.let_pass(self.duration)),
            };
            let ended = workers.into_iter().map(|worker| worker.join());
            let ended = ended.collect::<Result<Vec<_>, _>>().map_err(|_| "a thread panicked")?;
            let last = ended.iter().map(|outcome| outcome.ended).max().unwrap_or(start);
            let elapsed = counted.unwrap_or(Duration::from_nanos(last - start));
            Ok((elapsed.as_nanos() as f64, ended))
        })
    }
}

/// A time in ticks of the facade's clock, whose rate is determined first.
fn ticks(time: Duration) -> u64 {
    use manycore::sync::clock;
    let (start, first) = (Instant::now(), clock::now());
    std::thread::sleep(Duration::from_millis(1));
    let (ticks, elapsed) = (clock::now().wrapping_sub(first), start.elapsed());
    (time.as_secs_f64() * ticks as f64 / elapsed.as_secs_f64()) as u64
}

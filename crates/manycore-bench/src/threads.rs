//! Threads that do operations on something that they share: for a short time, or a number each.
//!
//! Warm-up, reading of counters and the end are as in a [slice of locks](crate::slice). The caller
//! defines the operations and the shared data: see [`Work`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use manycore::sync::{CachePadded, clock};
use serde::{Deserialize, Serialize};

use crate::slice::Pinning;
use crate::waits::{self, Waits};
use crate::{cpus, footprint};

/// When threads are to end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Bound {
    /// The slice ends after this time. An uncounted fifth of it comes before.
    Time(Duration),
    /// When each thread has done this many operations.
    Operations(u64),
}

/// The number of threads, their CPUs, and the length of the slice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ThreadSettings {
    pub threads: u32,
    pub bound: Bound,
    pub pinning: Pinning,
    /// How long to wait for the end of the threads.
    pub drain: Duration,
    /// One operation in this many is timed.
    pub sample: u32,
}

/// Timing an operation takes some 20 ns, as long as a short operation. So operations are timed
/// rarely enough that it costs a few percent at most.
const SAMPLE: u32 = 31;

impl ThreadSettings {
    /// Settings for a slice of this length, or for this many operations of each thread.
    pub fn new(
        threads: u32,
        slice: Duration,
        operations: Option<u64>,
        pinning: Pinning,
    ) -> ThreadSettings {
        let cpus = cpus::allowed().len() as u32;
        // Every thread should run on a CPU a few times, for some milliseconds each.
        let measured = slice * threads.div_ceil(3 * cpus);
        Self {
            threads,
            bound: operations.map_or(Bound::Time(measured), Bound::Operations),
            pinning,
            drain: measured.max(Duration::from_secs(10)),
            sample: SAMPLE,
        }
    }

    /// The longest time that a slice may take if something large has to be filled first.
    pub fn time_max(&self) -> Duration {
        let limit = match self.bound {
            Bound::Time(measured) => 2 * measured + self.drain,
            Bound::Operations(_) => Duration::from_secs(600),
        };
        limit + Duration::from_secs(120)
    }

    /// The most operations of a thread.
    fn operations_max(&self) -> u64 {
        match self.bound {
            Bound::Time(_) => u64::MAX,
            Bound::Operations(count) => count,
        }
    }
}

/// What one thread does.
pub(crate) trait Work: Send + 'static {
    /// What the thread has to tell when it ends.
    type Outcome: Send + 'static;

    /// Does the thread's operations by [`OperationLoop::run`].
    fn run(self, operations_loop: &mut OperationLoop<'_>) -> Self::Outcome;
}

/// A thread's loop of operations: counts them all and times some.
pub(crate) struct OperationLoop<'a> {
    shared: &'a Shared,
    index: usize,
    settings: ThreadSettings,
    operations: u64,
    latency: Histogram<u64>,
}

impl OperationLoop<'_> {
    /// Draws operations and does them, until the slice ends. Drawing is not timed.
    #[inline]
    pub fn run<O>(&mut self, mut draw: impl FnMut() -> O, mut operate: impl FnMut(O)) {
        let (limit, sample) = (self.settings.operations_max(), self.settings.sample);
        let count = &self.shared.counts[self.index];
        let mut until_sample = sample;
        // Relaxed, both: see `Shared::read` and where it is set.
        while self.operations < limit && !self.shared.stop.load(Ordering::Relaxed) {
            let operation = draw();
            until_sample -= 1;
            if until_sample == 0 {
                until_sample = sample;
                let begin = clock::now();
                operate(operation);
                self.latency.saturating_record(clock::now().saturating_sub(begin));
            } else {
                operate(operation);
            }
            self.operations += 1;
            count.store(self.operations, Ordering::Relaxed); // Relaxed: as above
        }
    }
}

/// The results of all threads.
#[derive(Debug)]
pub(crate) struct Ran<O> {
    /// The outcomes of all threads, in no order.
    pub outcomes: Vec<O>,
    /// The number of operations of each thread in the counted time.
    pub counts: Vec<u64>,
    /// The time that passed.
    pub elapsed_ns: f64,
    /// All operations, warm-up and all.
    pub operations: u64,
    /// How long operations took.
    pub latency: Waits,
    /// Bytes in use at the end of the counted time, beyond those before the threads started;
    /// without the threads' own data for counting and drawing.
    pub memory: f64,
}

/// What the threads share, beside what they operate on.
struct Shared {
    stop: AtomicBool,
    start: Barrier,
    counts: Box<[CachePadded<AtomicU64>]>,
}

/// Counters at a moment.
struct Reading {
    time: Instant,
    ticks: u64,
    counts: Vec<u64>,
}

impl Shared {
    fn read(&self) -> Reading {
        // Relaxed: only its own thread writes each counter; no other data depends on it.
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        Reading { time: Instant::now(), ticks: clock::now(), counts }
    }
}

/// A thread that has ended.
struct Ended<O> {
    outcome: Result<O, String>,
    latency: Histogram<u64>,
    operations: u64,
    time: Instant,
}

/// Runs threads, each with the work that `work` makes for its index. The error, in one line, names
/// the thread that failed or did not end.
pub(crate) fn run<W: Work>(
    settings: &ThreadSettings,
    work: impl FnMut(u32) -> W,
) -> Result<Ran<W::Outcome>, String> {
    let before = footprint::in_use();
    let shared = Arc::new(Shared {
        stop: AtomicBool::new(false),
        start: Barrier::new(settings.threads as usize + 1),
        counts: (0..settings.threads).map(|_| CachePadded::default()).collect(),
    });
    let threads = start(settings, &shared, work)?;
    // What threads keep for themselves; those that have ended keep nothing.
    let own = match settings.bound {
        Bound::Time(_) => footprint::in_use() - before,
        Bound::Operations(_) => 0,
    };
    let first = begin(settings, &shared);
    let mut ended = match settings.bound {
        Bound::Time(_) => Vec::new(),
        Bound::Operations(_) => gather(&threads, settings),
    };
    let last = shared.read();
    let after = footprint::in_use();
    // Relaxed: a thread that sees it later works a little longer.
    shared.stop.store(true, Ordering::Relaxed);
    if ended.is_empty() {
        ended = gather(&threads, settings);
    }

    let until = match settings.bound {
        Bound::Time(_) => last.time,
        Bound::Operations(_) => ended.iter().map(|ended| ended.time).max().unwrap_or(last.time),
    };
    let ns_per_tick = last.time.duration_since(first.time).as_nanos() as f64
        / last.ticks.wrapping_sub(first.ticks).max(1) as f64;
    let mut latency = Waits::default();
    ended.iter().for_each(|ended| latency.add_ticks(&ended.latency, ns_per_tick));
    Ok(Ran {
        counts: last.counts.iter().zip(&first.counts).map(|(last, first)| last - first).collect(),
        elapsed_ns: until.duration_since(first.time).as_nanos() as f64,
        operations: ended.iter().map(|ended| ended.operations).sum(),
        latency,
        memory: after as f64 - (before + own) as f64,
        outcomes: outcomes(ended, settings)?,
    })
}

/// Lets the threads start; the counters when counting begins.
fn begin(settings: &ThreadSettings, shared: &Shared) -> Reading {
    match settings.bound {
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
    }
}

fn start<W: Work>(
    settings: &ThreadSettings,
    shared: &Arc<Shared>,
    mut work: impl FnMut(u32) -> W,
) -> Result<mpsc::Receiver<Ended<W::Outcome>>, String> {
    let (sender, ended) = mpsc::channel();
    let cpus = cpus::allowed();
    let threads = settings.threads;
    let pinned = match settings.pinning {
        Pinning::Auto => threads as usize <= cpus.len(),
        Pinning::None => false,
        Pinning::Each => true,
    };
    for index in 0..threads {
        let cpu = pinned.then(|| cpus[index as usize % cpus.len()]);
        let (shared, sender, settings) = (Arc::clone(shared), sender.clone(), *settings);
        // Allocated before the count of memory: a thread's private data are not the structure's.
        let (work, latency) = (work(index), waits::recorder());
        let run = move || {
            let pinned = cpu.map_or(Ok(()), cpus::pin);
            shared.start.wait();
            let (shared, index) = (&*shared, index as usize);
            let mut operations_loop =
                OperationLoop { shared, index, settings, operations: 0, latency };
            let outcome = catch_unwind(AssertUnwindSafe(|| work.run(&mut operations_loop)));
            let outcome = match (outcome, pinned) {
                (Err(_), _) => Err("a thread of the benchmark panicked".to_owned()),
                (_, Err(error)) => Err(format!("cannot keep a thread on its CPU: {error}")),
                (Ok(outcome), Ok(())) => Ok(outcome),
            };
            let OperationLoop { latency, operations, .. } = operations_loop;
            // The receiver is gone if the caller is: the report is not needed then.
            drop(sender.send(Ended { outcome, latency, operations, time: Instant::now() }));
        };
        let spawned = std::thread::Builder::new().stack_size(256 << 10).spawn(run);
        spawned.map_err(|error| format!("cannot start thread {index} of {threads}: {error}"))?;
    }
    Ok(ended)
}

/// Collects the outcomes of all threads that end in time. With a number of operations, there is no
/// limit to the time.
fn gather<O>(threads: &mpsc::Receiver<Ended<O>>, settings: &ThreadSettings) -> Vec<Ended<O>> {
    let begin = Instant::now();
    let next = |_| match settings.bound {
        Bound::Time(_) => threads.recv_timeout(settings.drain.saturating_sub(begin.elapsed())).ok(),
        Bound::Operations(_) => threads.recv().ok(),
    };
    (0..settings.threads).map_while(next).collect()
}

/// The threads' results, if all of them returned one.
fn outcomes<O>(ended: Vec<Ended<O>>, settings: &ThreadSettings) -> Result<Vec<O>, String> {
    let stuck = settings.threads as usize - ended.len();
    let outcomes = ended.into_iter().map(|ended| ended.outcome).collect::<Result<Vec<_>, _>>()?;
    match stuck {
        0 => Ok(outcomes),
        _ => Err(format!(
            "{stuck} of {} threads did not come back from an operation",
            settings.threads
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls this for each operation; tells how often.
    struct Call<F>(F);

    impl<F: FnMut() + Send + 'static> Work for Call<F> {
        type Outcome = u64;

        fn run(mut self, operations_loop: &mut OperationLoop<'_>) -> u64 {
            let mut called = 0;
            operations_loop.run(
                || (),
                |()| {
                    called += 1;
                    (self.0)();
                },
            );
            called
        }
    }

    fn settings(bound: Bound) -> ThreadSettings {
        let drain = Duration::from_millis(300);
        ThreadSettings { threads: 3, bound, pinning: Pinning::Auto, drain, sample: 5 }
    }

    #[test]
    fn each_thread_does_as_many_operations_as_are_asked_for() {
        let ran = run(&settings(Bound::Operations(100)), |_| Call(|| ())).unwrap();
        assert_eq!((ran.outcomes, ran.counts), (vec![100; 3], vec![100; 3]));
        assert_eq!((ran.operations, ran.latency.count()), (300, 3 * 20));
        assert!(ran.elapsed_ns > 0.0);
    }

    #[test]
    fn operations_outside_of_the_time_are_not_counted() {
        let time = Duration::from_millis(50);
        let ran = run(&settings(Bound::Time(time)), |_| Call(std::thread::yield_now)).unwrap();
        assert!(ran.elapsed_ns >= 50e6, "{ran:?}");
        assert_eq!(ran.operations, ran.outcomes.iter().sum::<u64>());
        let counted: u64 = ran.counts.iter().sum();
        assert!(0 < counted && counted < ran.operations, "{ran:?}");
    }

    #[test]
    fn a_thread_that_panics_or_stays_away_is_an_error() {
        let panics = |thread: u32| Call(move || assert!(thread != 1, "expected by the test"));
        let error = run(&settings(Bound::Operations(9)), panics).unwrap_err();
        assert_eq!(error, "a thread of the benchmark panicked");
        let stays = |thread: u32| {
            Call(move || match thread {
                1 => std::thread::sleep(Duration::from_secs(60)),
                _ => std::thread::yield_now(),
            })
        };
        let error = run(&settings(Bound::Time(Duration::from_millis(5))), stays).unwrap_err();
        assert_eq!(error, "1 of 3 threads did not come back from an operation");
    }
}

//! Several mechanisms at many points, in rounds: the measuring protocol applied to slices of sets.
//!
//! As in a [campaign of locks](crate::lock::campaign): points come in random order, and at each the mechanisms run one after
//! another in random order, each in a process of its own that lives for a round.

use std::collections::BTreeMap;
use std::time::Duration;

use super::slice::Bound;
use super::{Keys, Options, Settings, Slice, Task, peers};
use crate::disturbance::Watch;
use crate::failure::Failure;
use crate::lock::campaign::Stopwatch;
use crate::progress::Progress;
use crate::worker::{Subject, Through, Worker};
use manycore_measure::paired::Schedule;

/// The base line's place among the mechanisms.
pub(crate) const BASE: usize = 0;

/// What was measured.
pub(crate) struct Samples {
    pub points: Vec<Task>,
    pub syncs: Vec<String>,
    /// By point, mechanism and round.
    slices: Vec<Vec<Vec<Slice>>>,
    /// Mechanisms that failed, with the reason.
    failed: BTreeMap<usize, Failure>,
    /// The share of the CPUs' time that other programs used, in percent.
    pub others: Option<f64>,
}

/// Runs these mechanisms at these points, as the options say. A mechanism that fails is left out from then on; if it is the base
/// line, all is in vain.
pub(crate) fn run(
    options: &Options,
    points: Vec<Task>,
    syncs: Vec<String>,
) -> Result<Samples, Failure> {
    let seed = options.workload.keys.seed;
    let mut point_order = Schedule::new(points.len(), seed);
    let mut sync_order = Schedule::new(syncs.len(), !seed);
    let of_point = || vec![Vec::new(); syncs.len()];
    let slices = points.iter().map(|_| of_point()).collect();
    let progress = Progress::rounds(options.progress, points.len() * syncs.len(), options.rounds);
    let mut samples = Samples { points, syncs, slices, failed: BTreeMap::new(), others: None };
    let mut stopwatch = Stopwatch::new(options.rounds);
    let watch = Watch::new();
    while stopwatch.another() {
        let round = stopwatch.rounds;
        let mut workers: Vec<Option<Worker>> = samples.syncs.iter().map(|_| None).collect();
        for point in point_order.next().unwrap_or_default() {
            for sync in sync_order.next().unwrap_or_default() {
                let settings =
                    options.settings(&samples.points[point], &samples.syncs[sync], round);
                progress.step(format!("round {round}: {}", in_words(&settings.task)));
                samples.take(point, sync, || slice(options, &mut workers[sync], &settings))?;
            }
        }
    }
    samples.others = watch.others();
    Ok(samples)
}

fn slice(
    options: &Options,
    worker: &mut Option<Worker>,
    settings: &Settings,
) -> Result<Slice, Failure> {
    let mut at_work = match worker.take() {
        Some(worker) => worker,
        None => {
            let lock = settings.task.sync.clone();
            let command = match peers::is_foreign(&lock) {
                true => options.foreign.as_ref().unwrap_or(&options.worker),
                false => &options.worker,
            };
            let subject = Subject { lock, through: Through::Native, shared: false };
            Worker::start(command, &[], &subject)?
        }
    };
    let slice = at_work.use_set(settings)?;
    *worker = Some(at_work);
    Ok(slice)
}

fn in_words(task: &Task) -> String {
    let Task { sync, threads, keys, .. } = task;
    let filling = if keys.is_many() {
        format!(" ({} keys to begin with)", keys.initial)
    } else {
        String::new()
    };
    format!("{sync}, {threads} threads{filling}")
}

impl Options {
    fn settings(&self, point: &Task, sync: &str, round: u32) -> Settings {
        let cpus = crate::cpus::allowed().len() as u32;
        // Every thread should have its turn on a CPU a few times, at some milliseconds each.
        let measured = self.slice * point.threads.div_ceil(3 * cpus);
        Settings {
            task: Task {
                sync: sync.to_owned(),
                keys: Keys {
                    seed: point.keys.seed.wrapping_add(u64::from(round)),
                    ..point.keys.clone()
                },
                ..point.clone()
            },
            bound: self.operations.map_or(Bound::Time(measured), Bound::Operations),
            pinning: self.pinning,
            drain: measured.max(Duration::from_secs(10)),
            sample: SAMPLE,
        }
    }
}

/// Timing an operation takes some 20 ns, as long as a short one: so seldom that it costs a few percent at most.
const SAMPLE: u32 = 31;

impl Samples {
    fn take(
        &mut self,
        point: usize,
        sync: usize,
        slice: impl FnOnce() -> Result<Slice, Failure>,
    ) -> Result<(), Failure> {
        if self.failed.contains_key(&sync) {
            return Ok(());
        }
        match slice() {
            Ok(slice) => self.slices[point][sync].push(slice),
            Err(failure) if sync == BASE => return Err(failure),
            Err(failure) => drop(self.failed.insert(sync, failure)),
        }
        Ok(())
    }

    /// Made-up samples, by point, mechanism and round.
    #[cfg(test)]
    pub fn of(points: Vec<Task>, syncs: Vec<String>, slices: Vec<Vec<Vec<Slice>>>) -> Self {
        Self { points, syncs, slices, failed: BTreeMap::new(), others: None }
    }

    /// Operations a second of a mechanism at a point, by round; `None` if it failed or is not there.
    pub fn throughput(&self, point: usize, sync: &str) -> Option<Vec<f64>> {
        let sync = self.syncs.iter().position(|known| known == sync)?;
        let measured = !self.failed.contains_key(&sync);
        measured.then(|| self.slices[point][sync].iter().map(Slice::throughput).collect())
    }

    /// The slices of the mechanisms at a point that have not failed, by round.
    pub fn present(&self, point: usize) -> Vec<(usize, &[Slice])> {
        let of_sync = self.slices[point].iter().enumerate();
        of_sync
            .filter(|(sync, _)| !self.failed.contains_key(sync))
            .map(|(sync, slices)| (sync, slices.as_slice()))
            .collect()
    }

    /// What went wrong, a line for each mechanism that failed.
    pub fn failures(&self) -> Vec<String> {
        self.failed.values().map(Failure::to_string).collect()
    }
}

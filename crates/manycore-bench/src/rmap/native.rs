//! On this host: every mechanism in every round, one after the other in drawn order.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use manycore_report::{Measurement, Mechanism, Metric};

use super::load::{Load, Outcome, Stage};
use super::mechanism::{self, AnyMap};
use super::{Options, Point};
use crate::campaign::PERCENTILES;
use crate::failure::Failure;
use crate::paired::{Better, Median, Protocol, Schedule};
use crate::progress::Progress;
use crate::slice::Slice;
use crate::waits::{Waits, recorder};
use crate::work::{Pace, work};

/// One operation of so many is timed: two looks at a clock cost as much as a short operation.
const SAMPLE: u64 = 17;

/// What a mechanism did in a round.
struct Round {
    slice: Slice,
    put_off_max: u64,
}

pub(super) fn run(options: &Options) -> Result<Vec<Measurement>, Failure> {
    let (subjects, points, pace) = (options.subjects(), options.points(), Pace::measure());
    let progress =
        Progress::steps(options.progress, points.len() * subjects.len() * options.rounds as usize);
    let mut rounds: Vec<Vec<Vec<Round>>> =
        points.iter().map(|_| subjects.iter().map(|_| Vec::new()).collect()).collect();
    let mut order = Schedule::new(subjects.len(), options.load.seed);
    for round in 0..options.rounds {
        for (point, of_point) in points.iter().zip(&mut rounds) {
            for subject in order.next().unwrap_or_default() {
                let name = &subjects[subject];
                progress.step(format!("{name}, {} threads", point.threads));
                let seed = options.load.seed.wrapping_add(u64::from(round));
                let load = Load { seed, ..options.load.clone() };
                let turns = pace.turns(load.outside_ns);
                let run = Run { duration: options.duration, point: *point, load, turns };
                let map =
                    mechanism::make_here(name, options.load.shape, options.load.trees as usize);
                let map = map.expect("the names were checked");
                let found = run.round(&*map);
                let found = found.map_err(|fault| Failure::Failed(format!("{name}: {fault}")))?;
                of_point[subject].push(found);
            }
        }
    }
    let records = points
        .iter()
        .zip(&rounds)
        .map(|(point, of_point)| records(options, *point, &subjects, of_point));
    Ok(records.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// A record for each mechanism at a point; the first is the base line.
fn records(
    options: &Options,
    point: Point,
    subjects: &[String],
    rounds: &[Vec<Round>],
) -> Result<Vec<Measurement>, Failure> {
    let throughput =
        |of: &Vec<Round>| of.iter().map(|round| round.slice.throughput()).collect::<Vec<_>>();
    let sides: Vec<Vec<f64>> = rounds.iter().map(throughput).collect();
    let candidates: Vec<&[f64]> = sides[1..].iter().map(Vec::as_slice).collect();
    let compared = Protocol::new(Better::Higher).compare_all(&sides[0], &candidates)?;
    let records = subjects.iter().enumerate().map(|(index, name)| {
        let value = median("op/s", &sides[index]);
        let mechanism = Mechanism::Sync(name.clone());
        let mut record = Measurement::new("rmap", mechanism, "op/s", value.value);
        (record.low, record.high) = (value.low, value.high);
        record.repetitions = options.rounds;
        let mut metric = |name: &str, metric| record.metrics.insert(name.to_owned(), metric);
        if let Some(comparison) = index.checked_sub(1).map(|index| &compared[index]) {
            let (low, high) = (comparison.interval.map(|i| i.0), comparison.interval.map(|i| i.1));
            metric("ratio", Metric { value: comparison.ratio, unit: "ratio".into(), low, high });
        }
        let of = |value: fn(&Round) -> f64| rounds[index].iter().map(value).collect::<Vec<_>>();
        metric("fairness", median("ratio", &of(|round| round.slice.fairness())));
        metric("put_off_max", median("updates", &of(|round| round.put_off_max as f64)));
        let mut times = Waits::default();
        for round in &rounds[index] {
            round.slice.waits.bins().for_each(|(ns, count)| times.add(ns, count));
        }
        for (name, share) in PERCENTILES {
            if let Some(value) = times.quantile(share) {
                let name = name.replace("wait", "latency");
                metric(&name, Metric { value, unit: "ns".into(), low: None, high: None });
            }
        }
        options.describe(record, point)
    });
    Ok(records.collect())
}

fn median(unit: &str, values: &[f64]) -> Metric {
    let Median { value, interval } = Median::of(values).expect("there is a round");
    Metric { value, unit: unit.into(), low: interval.map(|i| i.0), high: interval.map(|i| i.1) }
}

/// A round of a mechanism at a point.
struct Run {
    duration: Duration,
    point: Point,
    load: Load,
    /// Of work between two operations.
    turns: u32,
}

const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

struct Here {
    phase: AtomicU8,
    start: Instant,
    turns: u32,
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
        std::hint::black_box(work(1, self.turns));
    }

    fn tend_ticks(&self) -> u64 {
        self.tend_ticks
    }
}

impl Run {
    /// The error says what the mechanism did wrong.
    fn round(&self, map: &dyn AnyMap) -> Result<Round, String> {
        let filled = self.load.fill(map);
        let stage = Here {
            phase: AtomicU8::new(WARM_UP),
            start: Instant::now(),
            turns: self.turns,
            tend_ticks: ticks(self.load.tend),
        };
        let barrier = Barrier::new(self.point.threads as usize + 1);
        let mut slice =
            Slice { counts: Vec::new(), elapsed_ns: 0.0, waits: Waits::default(), stuck: 0 };
        std::thread::scope(|scope| {
            let (stage, barrier, load) = (&stage, &barrier, &self.load);
            let update = self.point.update;
            let workers: Vec<_> = (0..self.point.threads)
                .map(|me| {
                    scope.spawn(move || {
                        let outcome = Outcome { operations: 0, times: recorder() };
                        barrier.wait();
                        load.run(map, me, update, SAMPLE, stage, outcome)
                    })
                })
                .collect();
            barrier.wait();
            std::thread::sleep(self.duration / 5);
            let begin = Instant::now();
            stage.phase.store(MEASURE, Ordering::Relaxed); // Relaxed: as in `counted`
            std::thread::sleep(self.duration);
            stage.phase.store(STOP, Ordering::Relaxed); // Relaxed: as in `counted`
            slice.elapsed_ns = begin.elapsed().as_nanos() as f64;
            for worker in workers {
                let outcome = worker.join().map_err(|_| "a thread panicked")?;
                slice.counts.push(outcome.operations);
                slice.waits.add_ticks(&outcome.times, 1.0);
            }
            Ok::<_, String>(())
        })?;
        // Before it is asked whether all is there, by which everything is applied.
        let put_off_max = map.put_off_max();
        self.load.verify(map)?;
        drop(filled);
        Ok(Round { slice, put_off_max })
    }
}

/// A time in ticks of the facade's clock, which is asked how fast it goes.
fn ticks(time: Duration) -> u64 {
    use manycore::sync::clock;
    let (start, first) = (Instant::now(), clock::now());
    std::thread::sleep(Duration::from_millis(1));
    let (ticks, elapsed) = (clock::now().wrapping_sub(first), start.elapsed());
    (time.as_secs_f64() * ticks as f64 / elapsed.as_secs_f64()) as u64
}

//! On this host: every mechanism in every round, one after the other in drawn order.

use std::collections::{BTreeMap, BTreeSet};

use manycore_measure::{Measurement, Mechanism, Metric};

use super::slice::{Round, Settings};
use super::{Options, Point};
use crate::failure::Failure;
use crate::lock::Found;
use crate::lock::records::PERCENTILES;
use crate::lock::records::{median, ratio};
use crate::progress::Progress;
use crate::waits::Waits;
use crate::work::Pace;
use crate::worker::{Command, Subject, Through, Worker};
use manycore_measure::paired::{Better, Protocol, Schedule};

/// The base line's place among the mechanisms.
const BASE: usize = 0;

/// What was measured.
struct Samples<'a> {
    options: &'a Options,
    subjects: Vec<String>,
    points: Vec<Point>,
    /// By point, mechanism and round.
    rounds: Vec<Vec<Vec<Round>>>,
    /// Mechanisms that failed, with the reason.
    failed: BTreeMap<usize, Failure>,
}

/// Measures. A mechanism that fails is left out from then on; if it is the base line, all is in vain.
pub(super) fn run(options: &Options, worker: &Command) -> Result<Found, Failure> {
    let (subjects, points, pace) = (options.subjects(), options.points(), Pace::measure());
    let progress =
        Progress::steps(options.progress, points.len() * subjects.len() * options.rounds as usize);
    let rounds = points.iter().map(|_| subjects.iter().map(|_| Vec::new()).collect()).collect();
    let mut order = Schedule::new(subjects.len(), options.load.seed);
    let mut samples = Samples { options, subjects, points, rounds, failed: BTreeMap::new() };
    for round in 0..options.rounds {
        // A process for each mechanism in each round.
        let mut workers: Vec<Option<Worker>> = samples.subjects.iter().map(|_| None).collect();
        for point in 0..samples.points.len() {
            for subject in order.next().unwrap_or_default() {
                let settings = samples.settings(point, subject, round, pace);
                progress.step(format!("{}, {} threads", settings.mechanism, settings.threads));
                if samples.failed.contains_key(&subject) {
                    continue;
                }
                match measure(worker, &mut workers[subject], &settings) {
                    Ok(round) => samples.rounds[point][subject].push(round),
                    Err(failure) if subject == BASE => return Err(failure),
                    Err(failure) => _ = samples.failed.insert(subject, failure),
                }
            }
        }
    }
    let failures = samples.failed.values().map(Failure::to_string).collect();
    Ok(Found { measurements: samples.measurements()?, failures })
}

fn measure(
    command: &Command,
    worker: &mut Option<Worker>,
    settings: &Settings,
) -> Result<Round, Failure> {
    let mut at_work = match worker.take() {
        Some(worker) => worker,
        None => {
            let lock = settings.mechanism.clone();
            let subject = Subject { lock, through: Through::Native, shared: false };
            Worker::start(command, &[], &subject)?
        }
    };
    let round = at_work.update_maps(settings)?;
    *worker = Some(at_work);
    Ok(round)
}

impl Samples<'_> {
    fn settings(&self, point: usize, subject: usize, round: u32, pace: Pace) -> Settings {
        let Options { load, duration, .. } = self.options;
        let Point { threads, update } = self.points[point];
        let mut load = load.clone();
        load.seed = load.seed.wrapping_add(u64::from(round));
        let turns = pace.turns(load.outside_ns);
        let mechanism = self.subjects[subject].clone();
        Settings { mechanism, threads, update, load, duration: *duration, turns }
    }

    fn measurements(&self) -> Result<Vec<Measurement>, Failure> {
        let of_points = (0..self.points.len()).map(|point| self.records(point));
        Ok(of_points.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// A record for each mechanism at a point; the first is the base line.
    fn records(&self, point: usize) -> Result<Vec<Measurement>, Failure> {
        let is_whole = |subject: &usize| !self.failed.contains_key(subject);
        let subjects: Vec<usize> = (0..self.subjects.len()).filter(is_whole).collect();
        let throughput = |subject: &usize| values(&self.rounds[point][*subject], throughput);
        let sides: Vec<Vec<f64>> = subjects.iter().map(throughput).collect();
        let candidates: Vec<&[f64]> = sides[1..].iter().map(Vec::as_slice).collect();
        let compared = Protocol::new(Better::Higher).compare_all(&sides[BASE], &candidates)?;
        let mut records: Vec<_> = subjects.iter().map(|own| self.record(point, *own)).collect();
        for (record, comparison) in records[1..].iter_mut().zip(&compared) {
            record.metrics.insert("ratio".into(), ratio(comparison));
        }
        Ok(records)
    }

    fn record(&self, point: usize, subject: usize) -> Measurement {
        let rounds = &self.rounds[point][subject];
        let value = median("op/s", &values(rounds, throughput));
        let mechanism = Mechanism::Sync(self.subjects[subject].clone());
        let mut record = Measurement::new("rmap", mechanism, "op/s", value.value);
        (record.low, record.high) = (value.low, value.high);
        record.repetitions = self.options.rounds;
        let mut metric = |name: &str, metric| _ = record.metrics.insert(name.to_owned(), metric);
        metric("fairness", median("ratio", &values(rounds, |round| round.slice.fairness())));
        metric("put_off_max", median("updates", &values(rounds, |round| round.put_off_max as f64)));
        metric("memory", median("bytes", &values(rounds, |round| round.memory)));
        let bytes: Option<Vec<f64>> = rounds.iter().map(|round| round.bytes_per_interval).collect();
        if let Some(bytes) = bytes {
            metric("bytes_per_interval", median("bytes", &bytes));
        }
        let names: BTreeSet<&String> =
            rounds.iter().flat_map(|round| round.statistics.keys()).collect();
        for name in names {
            let count = |round: &Round| round.statistics.get(name).copied().unwrap_or_default();
            metric(&format!("count_{name}"), median("1/op", &values(rounds, count)));
        }
        let mut times = Waits::default();
        let bins = rounds.iter().flat_map(|round| round.slice.waits.bins());
        bins.for_each(|(ns, count)| times.add(ns, count));
        for (name, share) in PERCENTILES {
            if let Some(value) = times.quantile(share) {
                let name = name.replace("wait", "latency");
                metric(&name, Metric { value, unit: "ns".into(), low: None, high: None });
            }
        }
        self.options.describe(record, self.points[point])
    }
}

fn throughput(round: &Round) -> f64 {
    round.slice.throughput()
}

fn values(rounds: &[Round], value: impl Fn(&Round) -> f64) -> Vec<f64> {
    rounds.iter().map(value).collect()
}

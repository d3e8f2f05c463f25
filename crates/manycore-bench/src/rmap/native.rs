//! On this host: every mechanism in every round, in drawn order.

use std::collections::BTreeSet;

use manycore_measure::paired::{Better, Protocol, Rounds};
use manycore_measure::{Measurement, Mechanism};

use super::slice::{Round, Settings};
use super::{Options, Point};
use crate::campaign::{self, BASE, Campaign, Contest, values};
use crate::failure::Failure;
use crate::metrics::{WAIT_PERCENTILES, median, plain, ratio};
use crate::run_records::RunRecords;
use crate::waits::Waits;
use crate::work::Pace;
use crate::worker::{Command, Subject, Through, Worker};

/// What was measured: the candidates are the names of mechanisms.
type Samples = campaign::Samples<Point, String, Round>;

/// Measures.
pub(super) fn run(options: &Options, worker: &Command) -> Result<RunRecords, Failure> {
    let contest = ReverseMaps { options, worker, pace: Pace::measure() };
    let campaign = Campaign {
        rounds: Rounds::Count(options.rounds),
        seed: options.load.seed,
        progress: options.progress,
    };
    let samples = campaign.run(&contest, options.points(), options.subjects())?;
    Ok(RunRecords { measurements: options.measurements(&samples)?, failures: samples.failures() })
}

struct ReverseMaps<'a> {
    options: &'a Options,
    worker: &'a Command,
    pace: Pace,
}

impl Contest for ReverseMaps<'_> {
    type Point = Point;
    type Candidate = String;
    type Slice = Settings;

    fn start(&self, mechanism: &String) -> Result<Worker, Failure> {
        let lock = mechanism.clone();
        let subject = Subject { lock, through: Through::Native, shared: false };
        Worker::start(self.worker, &[], &subject)
    }

    fn slice(&self, point: &Point, mechanism: &String, round: u32) -> Settings {
        let Options { load, duration, .. } = self.options;
        let Point { threads, update } = *point;
        let mut load = load.clone();
        // The first round has the seed itself.
        load.seed = load.seed.wrapping_add(u64::from(round - 1));
        let iterations = self.pace.iterations(load.outside_ns);
        Settings {
            mechanism: mechanism.clone(),
            threads,
            update,
            load,
            duration: *duration,
            iterations,
        }
    }

    fn in_words(&self, point: &Point, mechanism: &String) -> String {
        format!("{mechanism}, {} threads", point.threads)
    }
}

impl Options {
    fn measurements(&self, samples: &Samples) -> Result<Vec<Measurement>, Failure> {
        let of_points = (0..samples.points.len()).map(|point| self.records(samples, point));
        Ok(of_points.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// A record for each mechanism at a point; the first is the base line.
    fn records(&self, samples: &Samples, point: usize) -> Result<Vec<Measurement>, Failure> {
        let present = samples.present(point);
        let sides: Vec<Vec<f64>> =
            present.iter().map(|(_, rounds)| values(rounds, throughput)).collect();
        let candidates: Vec<&[f64]> = sides[1..].iter().map(Vec::as_slice).collect();
        let compared = Protocol::new(Better::Higher).compare_all(&sides[BASE], &candidates)?;
        let record = |(number, rounds): &(usize, &[Round])| {
            self.record(samples.points[point], &samples.candidates[*number], rounds)
        };
        let mut records: Vec<_> = present.iter().map(record).collect();
        for (record, comparison) in records[1..].iter_mut().zip(&compared) {
            record.metrics.insert("ratio".into(), ratio(comparison));
        }
        Ok(records)
    }

    fn record(&self, point: Point, mechanism: &str, rounds: &[Round]) -> Measurement {
        let value = median("op/s", &values(rounds, throughput));
        let mechanism = Mechanism::Sync(mechanism.to_owned());
        let mut record = Measurement::new("rmap", mechanism, "op/s", value.value);
        (record.low, record.high) = (value.low, value.high);
        record.repetitions = self.rounds;
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
        for (name, share) in WAIT_PERCENTILES {
            if let Some(value) = times.quantile(share) {
                let name = name.replace("wait", "latency");
                metric(&name, plain("ns", value));
            }
        }
        self.describe(record, point)
    }
}

fn throughput(round: &Round) -> f64 {
    round.slice.throughput()
}

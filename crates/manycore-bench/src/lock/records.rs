//! From slices to records.

use manycore_measure::{Measurement, Mechanism, Metric, Parameter};

use super::campaign::{BASE, Point, Samples};
use crate::failure::Failure;
use crate::slice::Slice;
use crate::wait_pool::{Draw, Pool, Pooled};
use crate::work::{Length, Spread};
use manycore_measure::paired::{Better, Comparison, Median, Protocol};

/// Percentiles of waits that are reported, with the names of their metrics.
pub(crate) const PERCENTILES: [(&str, f64); 4] =
    [("wait_p50", 0.5), ("wait_p99", 0.99), ("wait_p99_9", 0.999), ("wait_max", 1.0)];

impl Samples {
    /// A record for each subject at each point.
    pub fn measurements(&self) -> Result<Vec<Measurement>, Failure> {
        let points = (0..self.points.len()).map(|point| self.measure_point(point));
        Ok(points.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    fn measure_point(&self, point: usize) -> Result<Vec<Measurement>, Failure> {
        let present: Vec<(usize, &[Slice])> = (0..self.subjects.len())
            .filter_map(|subject| Some((subject, self.at(point, subject)?)))
            .collect();
        let throughputs = self.compare(&present, Better::Higher, Slice::throughput)?;
        let fairness = self.compare(&present, Better::Lower, Slice::fairness)?;
        let pools: Vec<Pool> = present.iter().map(|(_, slices)| Pool::new(slices)).collect();
        let draw = Draw { confidence: 0.95, seed: self.seed };
        let mut measurements = Vec::new();
        for (index, (subject, slices)) in present.iter().enumerate() {
            let mut measurement = self.record(point, *subject, slices);
            let metrics = &mut measurement.metrics;
            metrics.insert("fairness".into(), median("ratio", &values(slices, Slice::fairness)));
            let stuck: u32 = slices.iter().map(|slice| slice.stuck).sum();
            if stuck > 0 {
                let value = f64::from(stuck) / slices.len() as f64;
                metrics.insert("stuck".into(), plain("threads", value));
            }
            for (name, share) in PERCENTILES {
                let pooled = pools[index].quantile(share, draw);
                metrics.extend(pooled.map(|pooled| (name.into(), metric("ns", pooled))));
            }
            if *subject != BASE {
                let wait = pools[index].ratio(&pools[0], 0.999, draw);
                metrics.extend(
                    wait.map(|pooled| ("wait_p99_9_ratio".into(), metric("ratio", pooled))),
                );
                metrics.insert("ratio".into(), ratio(&throughputs[index - 1]));
                metrics.insert("fairness_ratio".into(), ratio(&fairness[index - 1]));
            }
            measurements.push(measurement);
        }
        Ok(measurements)
    }

    /// All but the first of these against the first.
    fn compare(
        &self,
        present: &[(usize, &[Slice])],
        better: Better,
        value: impl Fn(&Slice) -> f64 + Copy,
    ) -> Result<Vec<Comparison>, Failure> {
        let sides: Vec<Vec<f64>> =
            present.iter().map(|(_, slices)| values(slices, value)).collect();
        let candidates: Vec<&[f64]> = sides[1..].iter().map(Vec::as_slice).collect();
        Ok(Protocol::new(better).compare_all(&sides[0], &candidates)?)
    }

    fn record(&self, point: usize, subject: usize, slices: &[Slice]) -> Measurement {
        let (point, subject) = (&self.points[point], &self.subjects[subject]);
        let throughput = median("op/s", &values(slices, Slice::throughput));
        let lock = Mechanism::Lock(subject.lock.clone());
        let mut measurement = Measurement::new("lock", lock, "op/s", throughput.value);
        (measurement.low, measurement.high) = (throughput.low, throughput.high);
        measurement.threads = point.threads;
        measurement.update = Some(100.0 - point.reads);
        measurement.repetitions = slices.len() as u32;
        measurement.seed = Some(self.seed);
        let others = self.others.map(|percent| ("others_cpu".to_string(), percent.into()));
        measurement.parameters.extend(others);
        measurement.parameters.extend(point.parameters());
        measurement.parameters.insert("through".into(), subject.through.name().into());
        measurement
    }
}

impl Point {
    /// What a record says about it.
    pub(crate) fn parameters(&self) -> [(String, Parameter); 6] {
        let parameters: [(&str, Parameter); 6] = [
            ("locks", f64::from(self.locks).into()),
            ("section_ns", self.section.mean_ns.into()),
            ("section_spread", spread(self.section)),
            ("data_lines", f64::from(self.data).into()),
            ("outside_ns", self.outside.mean_ns.into()),
            ("outside_spread", spread(self.outside)),
        ];
        parameters.map(|(name, value)| (name.to_string(), value))
    }
}

fn spread(length: Length) -> Parameter {
    match length.spread {
        Spread::Fixed => "fixed".into(),
        Spread::Exponential => "exponential".into(),
    }
}

fn values(slices: &[Slice], value: impl Fn(&Slice) -> f64) -> Vec<f64> {
    slices.iter().map(value).collect()
}

/// The median over the rounds. There is at least one round.
pub(crate) fn median(unit: &str, values: &[f64]) -> Metric {
    let Median { value, interval } =
        Median::of(values).unwrap_or(Median { value: f64::NAN, interval: None });
    Metric { value, unit: unit.into(), low: interval.map(|i| i.0), high: interval.map(|i| i.1) }
}

fn plain(unit: &str, value: f64) -> Metric {
    Metric { value, unit: unit.into(), low: None, high: None }
}

pub(crate) fn metric(unit: &str, Pooled { value, interval }: Pooled) -> Metric {
    Metric { value, unit: unit.into(), low: interval.map(|i| i.0), high: interval.map(|i| i.1) }
}

pub(crate) fn ratio(comparison: &Comparison) -> Metric {
    let (low, high) = (comparison.interval.map(|i| i.0), comparison.interval.map(|i| i.1));
    Metric { value: comparison.ratio, unit: "ratio".into(), low, high }
}

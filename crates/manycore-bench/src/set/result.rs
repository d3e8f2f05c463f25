//! From slices to records.

use manycore_measure::{Measurement, Mechanism, Parameter};

use super::Slice;
use super::campaign::Samples;
use super::task::Task;
use crate::campaign::{BASE, values};
use crate::failure::Failure;
use crate::metrics::{median, metric, ratio};
use crate::wait_pool::{Draw, WaitPool};
use manycore_measure::paired::{Better, Protocol};

/// Percentiles of latencies that are reported, with the names of their metrics.
pub(crate) const PERCENTILES: [(&str, f64); 4] =
    [("latency_p50", 0.5), ("latency_p99", 0.99), ("latency_p99_9", 0.999), ("latency_max", 1.0)];

impl Samples {
    /// A record for each mechanism at each point.
    pub fn measurements(&self) -> Result<Vec<Measurement>, Failure> {
        let points = (0..self.points.len()).map(|point| self.measure_point(point));
        Ok(points.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    fn measure_point(&self, point: usize) -> Result<Vec<Measurement>, Failure> {
        let present = self.present(point);
        let throughputs: Vec<Vec<f64>> =
            present.iter().map(|(_, slices)| values(slices, Slice::throughput)).collect();
        let others: Vec<&[f64]> = throughputs[1..].iter().map(Vec::as_slice).collect();
        let ratios = Protocol::new(Better::Higher).compare_all(&throughputs[BASE], &others)?;
        let mut records = Vec::new();
        for (index, (sync, slices)) in present.iter().enumerate() {
            let mut record = self.record(&self.points[point], *sync, slices);
            if index != BASE {
                record.metrics.insert("ratio".into(), ratio(&ratios[index - 1]));
            }
            records.push(record);
        }
        Ok(records)
    }

    fn record(&self, point: &Task, sync: usize, slices: &[Slice]) -> Measurement {
        let throughput = median("op/s", &values(slices, Slice::throughput));
        let mechanism = Mechanism::Sync(self.candidates[sync].clone());
        let mut record = Measurement::new("set", mechanism, "op/s", throughput.value);
        (record.low, record.high) = (throughput.low, throughput.high);
        record.repetitions = slices.len() as u32;
        let others = self.others.map(|percent| ("others_cpu".to_string(), percent.into()));
        record.parameters.extend(others);
        describe(&mut record, point);

        let metrics = &mut record.metrics;
        let pool = WaitPool::of(&slices.iter().map(|slice| &slice.latency).collect::<Vec<_>>());
        let draw = Draw { confidence: 0.95, seed: point.keys.seed };
        for (name, share) in PERCENTILES {
            let pooled = pool.quantile(share, draw);
            metrics.extend(pooled.map(|pooled| (name.into(), metric("ns", pooled))));
        }
        metrics.insert("fairness".into(), median("ratio", &values(slices, Slice::fairness)));
        let bytes = |value: fn(&Slice) -> f64| median("bytes", &values(slices, value));
        metrics.insert("bytes_per_key".into(), bytes(|slice| slice.bytes_per_key));
        metrics.insert("garbage".into(), bytes(|slice| slice.garbage));
        for name in slices.iter().flat_map(|slice| slice.statistics.keys()) {
            let value = |slice: &Slice| slice.statistics.get(name).copied().unwrap_or_default();
            metrics.insert(format!("count_{name}"), median("1/op", &values(slices, value)));
        }
        record
    }
}

/// What a record says about its point.
pub(crate) fn describe(record: &mut Measurement, point: &Task) {
    record.structure = Some(point.structure.clone());
    record.threads = point.threads;
    record.update = Some(point.update);
    record.seed = Some(point.keys.seed);
    let mut parameter = |name: &str, value: f64| {
        record.parameters.insert(name.to_owned(), Parameter::from(value));
    };
    parameter("initial", point.keys.initial as f64);
    parameter("range", point.keys.range as f64);
    parameter("zipf", point.keys.popularity.exponent());
    if point.structure == "hash" {
        parameter("buckets", point.keys.buckets as f64);
    }
}

//! From slices to records.

use manycore_measure::paired::{Better, Comparison, Protocol};
use manycore_measure::{Measurement, Mechanism};

use super::campaign::Samples;
use crate::campaign::{BASE, values};
use crate::failure::Failure;
use crate::metrics::{WAIT_PERCENTILES, median, metric, plain, ratio};
use crate::slice::Slice;
use crate::wait_pool::{Draw, WaitPool};

impl Samples {
    /// A record for each subject at each point.
    pub fn measurements(&self) -> Result<Vec<Measurement>, Failure> {
        let points = (0..self.points.len()).map(|point| self.measure_point(point));
        Ok(points.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    fn measure_point(&self, point: usize) -> Result<Vec<Measurement>, Failure> {
        let present = self.present(point);
        let throughputs = self.compare(&present, Better::Higher, Slice::throughput)?;
        let fairness = self.compare(&present, Better::Lower, Slice::fairness)?;
        let pools: Vec<WaitPool> =
            present.iter().map(|(_, slices)| WaitPool::new(slices)).collect();
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
            for (name, share) in WAIT_PERCENTILES {
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
        let (point, subject) = (&self.points[point], &self.candidates[subject]);
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

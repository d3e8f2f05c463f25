//! The workloads on this host.

use std::collections::BTreeMap;

use manycore_measure::Measurement;

use super::{LOCKS, Options};
use crate::campaign::values;
use crate::failure::Failure;
use crate::lock::Point;
use crate::lock::campaign::LockCampaign;
use crate::slice::{Pinning, Slice};
use crate::worker::{Subject, Through};
use manycore_measure::paired::{Median, Rounds};

/// The native results.
pub(crate) struct Native {
    pub measurements: Vec<Measurement>,
    pub failures: Vec<String>,
    /// Sections a second, by the point's index and the lock: the median over the rounds.
    pub throughput: BTreeMap<(usize, String), f64>,
}

/// Measures all locks at all points, in interleaved rounds.
pub(crate) fn measure(options: &Options, points: &[Point]) -> Result<Native, Failure> {
    let subject =
        |lock: &str| Subject { lock: lock.to_owned(), through: Through::Native, shared: false };
    let campaign = LockCampaign {
        points: points.to_vec(),
        subjects: LOCKS.map(subject).to_vec(),
        slice: options.slice,
        rounds: Rounds::Count(options.rounds),
        pinning: Pinning::Auto,
        seed: options.seed,
        worker: &options.worker,
        progress: options.pool.progress,
    };
    let samples = campaign.run()?;
    let mut throughput = BTreeMap::new();
    for point in 0..points.len() {
        for (number, subject) in samples.candidates.iter().enumerate() {
            let slices = samples.at(point, number).unwrap_or_default();
            let throughputs = values(slices, Slice::throughput);
            let median = Median::of(&throughputs);
            throughput.extend(median.map(|m| ((point, subject.lock.clone()), m.value)));
        }
    }
    let measurements = samples.measurements()?;
    Ok(Native { measurements, failures: samples.failures(), throughput })
}

//! From slices, and from simulations, to records.

use manycore_measure::paired::{Better, Protocol};
use manycore_measure::{Measurement, Mechanism};

use super::{NativeSamples, NativeTask, StructureSlice};
use crate::campaign::{BASE, values};
use crate::failure::Failure;
use crate::metrics::{median, metric, ratio};
use crate::simulated::{Finding, record};
use crate::wait_pool::{Draw, WaitPool};

/// The percentiles of latencies that are reported, and the names of their metrics.
const PERCENTILES: [(&str, f64); 4] =
    [("latency_p50", 0.5), ("latency_p99", 0.99), ("latency_p99_9", 0.999), ("latency_max", 1.0)];

/// A record for each mechanism at a point that has not failed.
pub(super) fn measured<T: NativeTask>(
    samples: &NativeSamples<T>,
    point: usize,
) -> Result<Vec<Measurement>, Failure> {
    let present = samples.present(point);
    let throughput = |slice: &T::Slice| T::used(slice).throughput();
    let throughputs: Vec<Vec<f64>> =
        present.iter().map(|(_, slices)| values(slices, throughput)).collect();
    let others: Vec<&[f64]> = throughputs[1..].iter().map(Vec::as_slice).collect();
    let ratios = Protocol::new(Better::Higher).compare_all(&throughputs[BASE], &others)?;
    let mut records = Vec::new();
    for (index, (sync, slices)) in present.into_iter().enumerate() {
        let mechanism = Mechanism::Sync(samples.candidates[sync].clone());
        let own: Vec<&StructureSlice> = slices.iter().map(T::used).collect();
        let mut record = record_of(T::WORKLOAD, mechanism, &own, samples.seed);
        let others = samples.others.map(|percent| ("others_cpu".to_string(), percent.into()));
        record.parameters.extend(others);
        if index != BASE {
            record.metrics.insert("ratio".into(), ratio(&ratios[index - 1]));
        }
        samples.points[point].describe(&mut record, slices);
        records.push(record);
    }
    Ok(records)
}

fn record_of(
    workload: &str,
    mechanism: Mechanism,
    slices: &[&StructureSlice],
    seed: u64,
) -> Measurement {
    let median_of = |unit, value: &dyn Fn(&StructureSlice) -> f64| {
        median(unit, &values(slices, |slice| value(slice)))
    };
    let throughput = median_of("op/s", &StructureSlice::throughput);
    let mut record = Measurement::new(workload, mechanism, "op/s", throughput.value);
    (record.low, record.high) = (throughput.low, throughput.high);
    record.repetitions = slices.len() as u32;
    record.seed = Some(seed);
    let metrics = &mut record.metrics;
    let pool = WaitPool::of(&slices.iter().map(|slice| &slice.latency).collect::<Vec<_>>());
    let draw = Draw { confidence: 0.95, seed };
    for (name, share) in PERCENTILES {
        let pooled = pool.quantile(share, draw);
        metrics.extend(pooled.map(|pooled| (name.into(), metric("ns", pooled))));
    }
    metrics.insert("fairness".into(), median_of("ratio", &StructureSlice::fairness));
    metrics.insert("bytes_per_key".into(), median_of("bytes", &|slice| slice.bytes_per_key));
    metrics.insert("garbage".into(), median_of("bytes", &|slice| slice.garbage));
    for name in slices.iter().flat_map(|slice| slice.statistics.keys()) {
        let value =
            |slice: &StructureSlice| slice.statistics.get(name).copied().unwrap_or_default();
        metrics.insert(format!("count_{name}"), median_of("1/op", &value));
    }
    record
}

/// A record of simulations, of one mechanism at one point: the waits of its findings are latencies
/// of operations.
pub(crate) fn simulated(
    workload: &str,
    sync: &str,
    findings: &[Finding],
    base: Option<&[Finding]>,
) -> Measurement {
    let mut record = record::of(workload, Mechanism::Sync(sync.to_owned()), findings, 1.0);
    let renamed = std::mem::take(&mut record.metrics).into_iter();
    record.metrics = renamed
        .map(|(name, metric)| match name.strip_prefix("wait_") {
            Some(percentile) => (format!("latency_{percentile}"), metric),
            None => (name, metric),
        })
        .collect();
    let ratios = base.into_iter().flat_map(|base| record::ratios(findings, base));
    record.metrics.extend(ratios.filter(|(name, _)| name == "ratio"));
    record
}

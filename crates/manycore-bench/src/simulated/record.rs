//! From findings to records.
//!
//! The first finding is that of the unchanged model; with further findings, which are those of its
//! variants, every value has a range.

use manycore_measure::{Measurement, Mechanism, Metric, Provenance};

use super::job::Finding;
use crate::metrics::WAIT_PERCENTILES;
use crate::slice::Slice;

/// A record of operations a second, each of `sections` sections, with all data of the findings. The
/// caller adds the settings.
pub(crate) fn of(
    workload: &str,
    mechanism: Mechanism,
    findings: &[Finding],
    sections: f64,
) -> Measurement {
    let throughput = |finding: &Finding| finding.slice.throughput() / sections;
    let throughput = band(&findings.iter().map(throughput).collect::<Vec<_>>(), "op/s");
    let mut record = Measurement::new(workload, mechanism, "op/s", throughput.value);
    (record.low, record.high) = (throughput.low, throughput.high);
    record.provenance = Provenance::Simulated;
    record.parameters.insert("variants".into(), (findings.len() as f64).into());
    let mut metric = |name: &str, unit, value: &dyn Fn(&Finding) -> Option<f64>| {
        let values: Option<Vec<f64>> = findings.iter().map(value).collect();
        record.metrics.extend(values.map(|values| (name.to_owned(), band(&values, unit))));
    };
    metric("fairness", "ratio", &|finding| Some(finding.slice.fairness()));
    for (name, share) in WAIT_PERCENTILES {
        metric(name, "ns", &|finding| finding.slice.waits.quantile(share));
    }
    for name in findings[0].sight.keys() {
        metric(name, unit(name), &|finding| finding.sight.get(name).copied());
    }
    record
}

/// The unit of a value that only a simulator has, by its name.
fn unit(name: &str) -> &'static str {
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    match name {
        "memory" | "garbage" => "bytes",
        "put_off_max" => "updates",
        _ if begins(&["time_", "cpu_", "share_"]) => "%",
        _ if begins(&["bytes_per_"]) => "bytes",
        _ if begins(&["count_"]) => "1/op",
        _ => "ratio",
    }
}

/// The ratios to a base line, variant by variant.
pub(crate) fn ratios(
    findings: &[Finding],
    base: &[Finding],
) -> impl Iterator<Item = (String, Metric)> {
    let ratio = |value: fn(&Slice) -> Option<f64>| {
        let pairs = findings.iter().zip(base);
        let ratios: Option<Vec<f64>> =
            pairs.map(|(own, base)| Some(value(&own.slice)? / value(&base.slice)?)).collect();
        ratios.map(|ratios| band(&ratios, "ratio"))
    };
    let metrics = [
        ("ratio", ratio(|slice| Some(slice.throughput()))),
        ("fairness_ratio", ratio(|slice| Some(slice.fairness()))),
        ("wait_p99_9_ratio", ratio(|slice| slice.waits.quantile(0.999))),
    ];
    metrics.into_iter().filter_map(|(name, metric)| Some((name.to_owned(), metric?)))
}

/// The first value, with the range of all values if there are several.
fn band(values: &[f64], unit: &str) -> Metric {
    let swept = values.len() > 1;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Metric {
        value: values[0],
        unit: unit.to_owned(),
        low: swept.then_some(least),
        high: swept.then_some(most),
    }
}

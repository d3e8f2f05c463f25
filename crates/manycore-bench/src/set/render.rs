//! Tables of the results of `bench set` and `sim set`.

use manycore_measure::Measurement;

use crate::structure;

/// A table for each point. Mechanisms keep the order of the request.
pub fn render(measurements: &[Measurement]) -> String {
    structure::render(measurements, heading, &[], |_| String::new())
}

/// What all mechanisms at a point have in common.
fn heading(measurement: &Measurement) -> String {
    let told = |name: &str| measurement.number(name).unwrap_or_default();
    let buckets = match told("buckets") {
        0.0 => String::new(),
        buckets => format!(" in {buckets} buckets"),
    };
    let plural = if measurement.threads == 1 { "" } else { "s" };
    format!(
        "{} of {} keys below {}{buckets}{}: {} thread{plural}, {} % updates, {}",
        measurement.structure.as_deref().unwrap_or("set"),
        told("initial"),
        told("range"),
        structure::zipf(measurement),
        measurement.threads,
        measurement.update.unwrap_or_default(),
        structure::runs(measurement),
    )
}

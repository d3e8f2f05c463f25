//! The results of `bench fs` and `sim fs` for a person.

use khronos_workloads::Workload;
use manycore_measure::Measurement;

use super::result::RETRIES;
use crate::structure;

/// A table for each point. Mechanisms keep the order of the request.
pub fn render(measurements: &[Measurement]) -> String {
    structure::render(measurements, heading, &[("retries", RETRIES)], |_| String::new())
}

/// What all mechanisms at a point have in common.
fn heading(measurement: &Measurement) -> String {
    let name = measurement.name("mix").unwrap_or_default();
    let about = Workload::named(name).map_or("", Workload::about);
    let chains = measurement.number("chains").unwrap_or_default();
    let plural = if measurement.threads == 1 { "" } else { "s" };
    let runs = structure::runs(measurement);
    format!(
        "{name}: {about}: {} thread{plural}, {chains} chains a directory, {runs}",
        measurement.threads
    )
}

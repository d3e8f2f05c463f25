//! The results of `bench txn` and `sim txn` for a person.

use manycore_measure::Measurement;

use crate::structure;

/// A table for each point. Mechanisms keep the order of the request.
pub fn render(measurements: &[Measurement]) -> String {
    structure::render(measurements, heading, &[("aborts", "count_aborts")], |_| String::new())
}

/// What all mechanisms at a point have in common.
fn heading(measurement: &Measurement) -> String {
    let number = |name: &str| measurement.number(name).unwrap_or_default();
    let mix = measurement.name("mix").unwrap_or_default();
    let database = match measurement.update {
        Some(update) => format!(
            "{} records{}, {update} % of requests write",
            number("initial"),
            structure::zipf(measurement),
        ),
        None => format!(
            "{} warehouses with {} items, districts of {} customers",
            number("warehouses"),
            number("items"),
            number("customers"),
        ),
    };
    let plural = if measurement.threads == 1 { "" } else { "s" };
    let runs = structure::runs(measurement);
    format!("{mix}: {database}: {} thread{plural}, {runs}", measurement.threads)
}

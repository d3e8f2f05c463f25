//! The results of `bench index` and `sim index` for a person.

use manycore_measure::Measurement;

use crate::structure;

/// A table for each point. Mechanisms keep the order of the request.
pub fn render(measurements: &[Measurement]) -> String {
    structure::render(measurements, heading, &[("entries", "entries")], in_two_steps)
}

/// What all mechanisms at a point have in common.
fn heading(measurement: &Measurement) -> String {
    let number = |name: &str| measurement.number(name).unwrap_or_default();
    let name = |name: &str| measurement.name(name).unwrap_or_default();
    let plural = if measurement.threads == 1 { "" } else { "s" };
    format!(
        "{}: {} of {} records, {} keys, values of {} bytes{}: {} thread{plural}, {}",
        name("mix"),
        measurement.structure.as_deref().unwrap_or("index"),
        number("initial"),
        name("key"),
        number("value_bytes"),
        structure::zipf(measurement),
        measurement.threads,
        structure::runs(measurement),
    )
}

/// A line about the mechanisms that read and write in two steps, if there are some.
fn in_two_steps(members: &[&Measurement]) -> String {
    let is_meant = |member: &&&Measurement| member.name("modify_steps") == Some("two");
    let names: Vec<_> = members.iter().filter(is_meant).map(|m| m.mechanism.name()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(
            "In two steps, so that updates of others between them are lost: {}\n",
            names.join(", ")
        ),
    }
}

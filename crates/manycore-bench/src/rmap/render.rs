//! The results of `bench rmap` and `sim rmap` for a person.

use manycore_measure::{Cell, Column, Measurement, Table, duration, interval, quantity};

use super::BASE;
use crate::heading::{by_heading, counts};

/// A table for each point, best mechanism first.
pub fn render(measurements: &[Measurement]) -> String {
    let tables = by_heading(measurements, heading).into_iter().map(|(heading, mut members)| {
        members.sort_by(|a, b| b.value.total_cmp(&a.value));
        format!("{heading}\n{}\n{}", table(&members), counts(&members))
    });
    tables.collect::<Vec<_>>().join("\n")
}

fn heading(measurement: &Measurement) -> String {
    let number = |name: &str| measurement.number(name).unwrap_or_default();
    let objects = measurement.name("objects").unwrap_or_default();
    let simulated = match measurement.provenance {
        manycore_measure::Provenance::Simulated => format!("{} (simulated): ", measurement.machine),
        _ => String::new(),
    };
    let shared = match measurement.structure.as_deref() {
        Some(structure @ ("queue" | "stack")) => format!("{structure}: {}", number("trees")),
        _ => format!("trees: {} of {} intervals", number("trees"), number("initial")),
    };
    let popularity = match number("zipf") {
        0.0 => String::new(),
        exponent => format!(", zipf {exponent}"),
    };
    let bound = match number("operations") {
        0.0 => String::new(),
        count => format!(", {count} operations each"),
    };
    format!(
        "{simulated}{} threads, {} % updates, {objects} objects, {shared}{popularity}{bound}, {} between operations",
        measurement.threads,
        measurement.update.unwrap_or(100.0),
        duration(number("outside_ns")).trim_end(),
    )
}

fn table(members: &[&Measurement]) -> Table {
    let of_base = format!("of {BASE}");
    let numbers =
        ["operations", &of_base, "95 %", "p50 time", "p99", "p99.9", "max", "put off", "memory"];
    let numbers = numbers.iter().map(|name| Column::number(name));
    let mut table = Table::new([Column::words("sync")].into_iter().chain(numbers));
    for member in members {
        let metric = |name: &str| member.metrics.get(name);
        let text = |name: &str| {
            metric(name).map_or(String::new(), |metric| quantity(metric.value, &metric.unit))
        };
        let spread = metric("ratio").map(|metric| interval(metric.low, metric.high));
        let mut row = vec![
            member.mechanism.name().to_owned(),
            quantity(member.value, &member.unit),
            text("ratio"),
            spread.unwrap_or_default(),
        ];
        row.extend(["p50", "p99", "p99_9", "max"].map(|share| text(&format!("latency_{share}"))));
        row.push(
            metric("put_off_max").map_or(String::new(), |metric| format!("{:.0}", metric.value)),
        );
        row.push(text("memory"));
        table.row(row.into_iter().map(Cell::from));
    }
    table
}

//! The results of `bench set` and `sim set` for a person.

use manycore_measure::{
    Cell, Column, Measurement, Provenance, Table, Tone, interval, quantity, ratio, significant,
};

use crate::heading::{by_heading, counts, judge, warning};

/// A table for each point, mechanisms in the order asked for.
pub fn render(measurements: &[Measurement]) -> String {
    let base = measurements.first().map_or("", |first| first.mechanism.name());
    let tables: Vec<_> = by_heading(measurements, heading)
        .into_iter()
        .map(|(heading, members)| {
            format!("{heading}\n{}\n{}", table(&members, base), counts(&members))
        })
        .collect();
    format!("{}{}", tables.join("\n"), warning(measurements))
}

/// What all mechanisms at a point have in common.
fn heading(measurement: &Measurement) -> String {
    let told = |name: &str| measurement.number(name).unwrap_or_default();
    let buckets = match told("buckets") {
        0.0 => String::new(),
        buckets => format!(" in {buckets} buckets"),
    };
    let popularity = match told("zipf") {
        0.0 => String::new(),
        exponent => format!(", zipf {exponent}"),
    };
    let plural = if measurement.threads == 1 { "" } else { "s" };
    let runs = match measurement.provenance {
        Provenance::Simulated => format!("simulated {}", measurement.machine),
        _ => format!("{} rounds", measurement.repetitions),
    };
    format!(
        "{} of {} keys below {}{buckets}{popularity}: {} thread{plural}, {} % updates, {runs}",
        measurement.structure.as_deref().unwrap_or("set"),
        told("initial"),
        told("range"),
        measurement.threads,
        measurement.update.unwrap_or_default(),
    )
}

fn table(members: &[&Measurement], base: &str) -> Table {
    let of_base = format!("of {base}");
    let numbers =
        ["operations", &of_base, "95 %", "p50", "p99", "p99.9", "max/min", "B/key", "garbage"];
    let columns = [Column::words("mechanism")].into_iter().chain(numbers.map(Column::number));
    let mut table = Table::new(columns.chain([Column::words("verdict")]));
    for measurement in members {
        let metric = |name: &str| measurement.metrics.get(name);
        let text = |name: &str| metric(name).map_or(String::new(), |m| quantity(m.value, &m.unit));
        let against = metric("ratio");
        let (verdict, tone) = match against {
            // A simulation has no rounds that differ; with a sweep, the interval is the range over
            // variants.
            Some(_) if measurement.provenance == Provenance::Simulated => {
                (String::new(), Tone::Plain)
            }
            Some(metric) => judge(metric.low.zip(metric.high)),
            None => ("base line".to_string(), Tone::Faint),
        };
        let mut row = vec![
            Cell::from(measurement.mechanism.name()),
            quantity(measurement.value, &measurement.unit).into(),
            against.map_or(String::new(), |m| ratio(m.value)).into(),
            against.map_or(String::new(), |m| interval(m.low, m.high)).into(),
        ];
        let names = ["latency_p50", "latency_p99", "latency_p99_9", "fairness"];
        row.extend(names.map(|name| Cell::from(text(name))));
        let bytes = metric("bytes_per_key").map_or(String::new(), |m| significant(m.value, 3));
        row.extend([Cell::from(bytes), Cell::from(text("garbage"))]);
        row.push(Cell::new(verdict, tone));
        table.row(row);
    }
    table
}

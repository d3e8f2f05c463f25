//! Records of threads that use a structure, as tables.

use manycore_measure::{
    Cell, Column, Measurement, Provenance, Table, Tone, interval, quantity, ratio, significant,
};

use crate::heading::{by_heading, counts, judge, warning};

/// A table for each point, with mechanisms in the requested order. Further columns, metrics by
/// their headings, appear where a point has them; `notes` are lines below a table.
pub(crate) fn render(
    measurements: &[Measurement],
    heading: impl Fn(&Measurement) -> String,
    more: &[(&str, &str)],
    notes: impl Fn(&[&Measurement]) -> String,
) -> String {
    let base = measurements.first().map_or("", |first| first.mechanism.name());
    let tables: Vec<_> = by_heading(measurements, heading)
        .into_iter()
        .map(|(heading, members)| {
            let table = table(&members, base, more);
            format!("{heading}\n{table}\n{}{}", notes(&members), counts(&members))
        })
        .collect();
    format!("{}{}", tables.join("\n"), warning(measurements))
}

/// How popular keys are, for a heading.
pub(crate) fn zipf(measurement: &Measurement) -> String {
    match measurement.number("zipf") {
        None | Some(0.0) => String::new(),
        Some(exponent) => format!(", zipf {exponent}"),
    }
}

/// How many runs there were, or where they were simulated, for a heading.
pub(crate) fn runs(measurement: &Measurement) -> String {
    match measurement.provenance {
        Provenance::Simulated => format!("simulated {}", measurement.machine),
        _ => format!("{} rounds", measurement.repetitions),
    }
}

fn table(members: &[&Measurement], base: &str, more: &[(&str, &str)]) -> Table {
    let is_there =
        |(_, name): &&(&str, &str)| members.iter().any(|member| member.metrics.contains_key(*name));
    let more: Vec<_> = more.iter().filter(is_there).collect();
    let of_base = format!("of {base}");
    let times = ["p50", "p99", "p99.9", "max/min"];
    let numbers = ["operations", &of_base, "95 %"].into_iter().chain(more.iter().map(|m| m.0));
    let numbers = numbers.chain(times).chain(["B/key", "garbage"]).map(Column::number);
    let columns = [Column::words("mechanism")].into_iter().chain(numbers);
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
        row.extend(more.iter().map(|(_, name)| Cell::from(text(name))));
        let names = ["latency_p50", "latency_p99", "latency_p99_9", "fairness"];
        row.extend(names.map(|name| Cell::from(text(name))));
        let bytes = metric("bytes_per_key").map_or(String::new(), |m| significant(m.value, 3));
        row.extend([Cell::from(bytes), Cell::from(text("garbage"))]);
        row.push(Cell::new(verdict, tone));
        table.row(row);
    }
    table
}

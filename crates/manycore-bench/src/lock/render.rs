//! The results of `bench lock` for a person.

use manycore_measure::{
    Cell, Column, Measurement, Table, Tone, duration, interval, quantity, ratio,
};

use crate::heading::{by_heading, judge, warning};
use crate::mix::USUAL_DATA;

/// A table for each point, best lock first.
pub fn render(measurements: &[Measurement]) -> String {
    let tables = by_heading(measurements, heading).into_iter().map(|(heading, mut members)| {
        members.sort_by(|a, b| b.value.total_cmp(&a.value));
        format!("{heading}\n{}\n", table(&members))
    });
    let tables = tables.collect::<Vec<_>>().join("\n");
    format!("{tables}{}", warning(measurements))
}

/// What all locks at a point have in common.
fn heading(measurement: &Measurement) -> String {
    let rounds = counted(f64::from(measurement.repetitions), "round");
    format!("{}, {rounds}", in_words(measurement))
}

/// The point in words.
pub(crate) fn in_words(measurement: &Measurement) -> String {
    let number = |name: &str| measurement.number(name).unwrap_or_default();
    let length = |name: &str| {
        let spread = match measurement.name(&format!("{name}_spread")) {
            Some("exponential") => "about ",
            _ => "",
        };
        format!("{spread}{}", duration(number(&format!("{name}_ns"))).trim_end())
    };
    let reads = 100.0 - measurement.update.unwrap_or(100.0);
    let readers = if reads > 0.0 { format!(", {reads} % of them reading") } else { String::new() };
    format!(
        "{}, {}, sections of {}{readers} with {}, {} between them",
        counted(f64::from(measurement.threads), "thread"),
        counted(number("locks"), "lock"),
        length("section"),
        lines_of_data(measurement),
        length("outside"),
    )
}

/// The cache lines that a section moves, in words.
pub(crate) fn lines_of_data(measurement: &Measurement) -> String {
    let lines = measurement.number("data_lines").unwrap_or(f64::from(USUAL_DATA));
    format!("{} of data", counted(lines, "line"))
}

fn counted(count: f64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1.0 { "" } else { "s" })
}

fn table(members: &[&Measurement]) -> Table {
    let numbers = ["sections", "of glibc", "95 %", "p50 wait", "p99", "p99.9", "max", "max/min"];
    let columns = [Column::words("lock")].into_iter().chain(numbers.map(Column::number));
    let mut table = Table::new(columns.chain([Column::words("verdict")]));
    for measurement in members {
        let metric = |name: &str| measurement.metrics.get(name);
        let text = |name: &str| metric(name).map_or(String::new(), |m| quantity(m.value, &m.unit));
        let against = metric("ratio");
        let (verdict, tone) = match against {
            Some(metric) => judge(metric.low.zip(metric.high)),
            None => ("base line".to_string(), Tone::Faint),
        };
        let mut row = vec![
            Cell::from(name(measurement)),
            quantity(measurement.value, &measurement.unit).into(),
            against.map_or(String::new(), |m| ratio(m.value)).into(),
            against.map_or(String::new(), |m| interval(m.low, m.high)).into(),
        ];
        let waits = ["wait_p50", "wait_p99", "wait_p99_9", "wait_max", "fairness"];
        row.extend(waits.map(|name| Cell::from(text(name))));
        let stuck = metric("stuck").map_or(String::new(), |stuck| {
            format!("; {:.1} of {} threads stuck", stuck.value, measurement.threads)
        });
        row.push(Cell::new(verdict + &stuck, tone));
        table.row(row);
    }
    table
}

fn name(measurement: &Measurement) -> String {
    match measurement.name("through") {
        Some(through) if through != "native" => {
            format!("{} ({through})", measurement.mechanism.name())
        }
        _ => measurement.mechanism.name().to_string(),
    }
}

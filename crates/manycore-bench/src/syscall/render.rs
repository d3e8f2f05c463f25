//! The results of `sim syscall` for a person.

use manycore_measure::{Cell, Column, Measurement, Table, quantity, significant};

use super::Assumptions;

/// Throughput and latency by clients, with the transfers between packages, the division of time,
/// and the assumptions.
pub fn render(measurements: &[Measurement], assumed: &Assumptions) -> String {
    let Some(first) = measurements.first() else { return String::new() };
    let variants = match first.number("variants").unwrap_or_default() {
        more if more > 1.0 => format!(", range over {more} variants of the machine"),
        _ => String::new(),
    };
    format!(
        "{} (simulated), a worker for each client, {} counted{variants}\n\n{}\n\n\
         Lines that moved for each request, and CPU time by what it went to:\n{}\n\n\
         Assumed, and not measured:\n{}\n",
        first.machine,
        quantity(first.number("duration_ns").unwrap_or_default(), "ns").trim_end(),
        results(measurements),
        lines(measurements),
        assumptions(assumed),
    )
}

fn results(measurements: &[Measurement]) -> Table {
    let mut table = Table::new([
        Column::number("clients"),
        Column::words("calls"),
        Column::number("requests"),
        Column::number("over in place"),
        Column::number("latency, median"),
        Column::number("99 %"),
    ]);
    for record in measurements {
        let rate = |value| quantity(value, "op/s");
        let ratio = record.metrics.get("ratio").map_or(String::new(), |ratio| {
            band(significant(ratio.value, 3), ratio.low.zip(ratio.high), |value| {
                significant(value, 3)
            })
        });
        table.row([
            Cell::from(record.threads.to_string()),
            record.mechanism.name().into(),
            band(rate(record.value), record.low.zip(record.high), rate).into(),
            ratio.into(),
            time(record, "latency_p50").into(),
            time(record, "latency_p99").into(),
        ]);
    }
    table
}

fn time(record: &Measurement, name: &str) -> String {
    record.metrics.get(name).map_or(String::new(), |metric| quantity(metric.value, "ns"))
}

fn band(value: String, range: Option<(f64, f64)>, show: impl Fn(f64) -> String) -> String {
    match range {
        Some((low, high)) => format!("{value} ({} .. {})", show(low), show(high)),
        None => value,
    }
}

fn lines(measurements: &[Measurement]) -> Table {
    let columns = [
        ("in the package", "transfers_0"),
        ("between packages", "transfers_1"),
        ("stalls", "time_stall"),
        ("locks", "time_lock_spin"),
        ("system", "time_system"),
        ("ready", "time_ready"),
        ("idle", "time_idle"),
    ];
    let headings = columns.map(|(heading, _)| Column::number(heading));
    let start = [Column::number("clients"), Column::words("calls")];
    let mut table = Table::new(start.into_iter().chain(headings));
    for record in measurements {
        let metric = |(_, name): &(&str, &str)| {
            let Some(metric) = record.metrics.get(*name) else { return Cell::from("") };
            let percent = if metric.unit == "%" { " %" } else { "" };
            Cell::from(format!("{}{percent}", significant(metric.value, 3)))
        };
        let start = [Cell::from(record.threads.to_string()), Cell::from(record.mechanism.name())];
        table.row(start.into_iter().chain(columns.iter().map(metric)));
    }
    table
}

fn assumptions(assumed: &Assumptions) -> Table {
    let columns = [Column::words("what"), Column::number("value"), Column::words("is")];
    let mut table = Table::new(columns);
    for (name, value, unit, what) in assumed.listed() {
        let value = if unit.is_empty() { value.to_string() } else { quantity(value, unit) };
        table.row([Cell::from(name), Cell::from(value), Cell::from(what)]);
    }
    table
}

//! The results of `sim kernel` for a person.

use manycore_measure::{Cell, Column, Measurement, Table, quantity, significant};

use super::{Application, Numbers, Options, table};

/// Throughput by threads, the waits for each lock, and every number of the model.
pub fn render(measurements: &[Measurement], options: &Options) -> String {
    let Some(first) = measurements.first() else { return String::new() };
    let variants = match first.number("variants").unwrap_or_default() {
        more if more > 1.0 => format!(", range over {more} variants of the machine"),
        _ => String::new(),
    };
    let what = match options.application {
        Application::Processes => "AIM7: processes that make processes",
        Application::Threads => "SPECjbb2013: threads of one process",
    };
    format!(
        "{} (simulated), {what}, {} counted{variants}\n\n{}\n\nShare of all waiting for locks, by threads:\n{}\n\n{}\n",
        first.machine,
        quantity(first.number("duration_ns").unwrap_or_default(), "ns").trim_end(),
        results(measurements),
        waits(measurements),
        numbers(options),
    )
}

fn results(measurements: &[Measurement]) -> Table {
    let mut table = Table::new([
        Column::number("threads"),
        Column::words("what"),
        Column::number("a second"),
        Column::number("median"),
        Column::number("99 %"),
        Column::number("asleep"),
    ]);
    for record in measurements {
        let rate = |value| quantity(value, "op/s");
        let range = record.low.zip(record.high);
        let range = range.map_or(String::new(), |(l, h)| format!(" ({} .. {})", rate(l), rate(h)));
        let metric = |name: &str, unit: &str| {
            record.metrics.get(name).map_or(String::new(), |metric| match unit {
                "%" => format!("{} %", significant(metric.value, 2)),
                unit => quantity(metric.value, unit),
            })
        };
        table.row([
            Cell::from(record.threads.to_string()),
            record.mechanism.name().into(),
            format!("{}{range}", rate(record.value)).into(),
            metric("latency_p50", "ns").into(),
            metric("latency_p99", "ns").into(),
            metric("time_lock_wait", "%").into(),
        ]);
    }
    table
}

/// A row for each lock, a column for each number of threads.
fn waits(measurements: &[Measurement]) -> Table {
    const PREFIX: &str = "share_wait_";
    let records = || measurements.iter().filter(|record| record.metrics.contains_key("time_stall"));
    let columns = records().map(|record| Column::number(&record.threads.to_string()));
    let mut table = Table::new([Column::words("lock")].into_iter().chain(columns));
    let names = records().flat_map(|record| record.metrics.keys());
    let mut names: Vec<&str> = names.filter_map(|name| name.strip_prefix(PREFIX)).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let share = |record: &Measurement| {
            let metric = record.metrics.get(&format!("{PREFIX}{name}"));
            metric.map_or(String::new(), |metric| format!("{} %", significant(metric.value, 2)))
        };
        let cells = records().map(|record| Cell::from(share(record)));
        table.row([Cell::from(name)].into_iter().chain(cells));
    }
    table
}

fn numbers(options: &Options) -> Table {
    let mut rows = Table::new([
        Column::words("number"),
        Column::number("value"),
        Column::words("chosen"),
        Column::words("what"),
    ]);
    rows.row([
        Cell::from("compute"),
        quantity(options.compute.as_nanos() as f64, "ns").into(),
        "fitted".into(),
        "computation between two operations, the mean".into(),
    ]);
    let usual = Numbers::of(options.application);
    for number in table(options.application) {
        let value = options.numbers.get(number.name);
        let chosen = match value == usual.get(number.name) {
            true => number.origin.to_string(),
            false => "asked for".to_owned(),
        };
        rows.row([
            Cell::from(number.name),
            significant(value, 3).into(),
            chosen.into(),
            number.what.into(),
        ]);
    }
    rows
}

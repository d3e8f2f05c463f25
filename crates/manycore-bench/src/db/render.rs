//! The results of `sim db` for a person.

use manycore_measure::{Cell, Column, Measurement, Metric, Table, quantity, significant};

use crate::lock::lines_of_data;

/// For each multiprogramming level: transactions a second, and the share of CPU time that goes to
/// locks, by CPUs.
pub fn render(measurements: &[Measurement]) -> String {
    let level = |record: &Measurement| (record.update.unwrap_or_default(), record.threads);
    let mut levels: Vec<(f64, u32)> = measurements.iter().map(level).collect();
    levels.dedup();
    let of_level = |(update, terminals): &(f64, u32)| {
        let is_of = |record: &&Measurement| level(record) == (*update, *terminals);
        let members: Vec<&Measurement> = measurements.iter().filter(is_of).collect();
        let first = members[0];
        let variants = match first.number("variants").unwrap_or_default() {
            more if more > 1.0 => format!(", range over {more} variants of the machine"),
            _ => String::new(),
        };
        let kinds = match *update {
            0.0 => String::new(),
            share => format!(", {share} % of transactions update"),
        };
        let rates = matrix(&members, |record| {
            let rate = |value| quantity(value, "op/s").replace("op/s", "tx/s");
            band(rate(record.value), record.low.zip(record.high).map(|(l, h)| [rate(l), rate(h)]))
        });
        let shares = matrix(&members, |record| {
            let Some(Metric { value, low, high, .. }) = record.metrics.get("cpu_locks") else {
                return String::new();
            };
            let share = |value: f64| format!("{} %", significant(value, 2));
            band(share(*value), low.zip(*high).map(|(low, high)| [share(low), share(high)]))
        });
        format!(
            "{} (simulated), {terminals} terminals{kinds}, {} in a section, {} counted{variants}\n\
             Transactions a second, by CPUs:\n{rates}\n\nCPU time in locks, by CPUs:\n{shares}\n",
            first.machine,
            lines_of_data(first),
            quantity(first.number("duration_ns").unwrap_or_default(), "ns").trim_end(),
        )
    };
    levels.iter().map(of_level).collect::<Vec<_>>().join("\n")
}

fn band(value: String, range: Option<[String; 2]>) -> String {
    match range {
        Some([low, high]) => format!("{value} ({low} .. {high})"),
        None => value,
    }
}

/// A row for each lock, a column for each number of CPUs.
fn matrix(members: &[&Measurement], show: impl Fn(&Measurement) -> String) -> Table {
    let cpus = |record: &Measurement| record.number("cpus").unwrap_or_default() as u32;
    let mut columns: Vec<u32> = members.iter().map(|record| cpus(record)).collect();
    columns.sort_unstable();
    columns.dedup();
    let headings = columns.iter().map(|cpus| Column::number(&cpus.to_string()));
    let mut table = Table::new([Column::words("lock")].into_iter().chain(headings));
    let mut locks: Vec<&str> = members.iter().map(|record| record.mechanism.name()).collect();
    locks.dedup();
    for lock in locks {
        let cell = |column: &u32| {
            let is_it =
                |record: &&&Measurement| record.mechanism.name() == lock && cpus(record) == *column;
            Cell::from(members.iter().find(is_it).map_or(String::new(), |record| show(record)))
        };
        table.row([Cell::from(lock)].into_iter().chain(columns.iter().map(cell)));
    }
    table
}

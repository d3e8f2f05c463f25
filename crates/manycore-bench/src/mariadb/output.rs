//! The database's results, as records and as tables.

use manycore_measure::paired::{Better, Median, Protocol};
use manycore_measure::{
    Cell, Column, Measurement, Mechanism, Metric, Results, Table, interval, quantity, ratio,
};

use super::Measured;
use manycore_compare::rounds::Series;
use manycore_launch::failure::{Failure, Result};

/// A record for each lock at each point.
pub fn results(locks: &[String], measured: &[Measured], seed: u64) -> Result<Results> {
    let mut records = Vec::new();
    for Measured { point, series } in measured {
        let values: Vec<&[f64]> = series.iter().map(|series| &series.values[..]).collect();
        let comparisons = Protocol::new(Better::Higher).compare_all(values[0], &values[1..]);
        let comparisons =
            comparisons.map_err(|error| Failure::failed(format!("{point}: {error}")))?;
        let comparisons = std::iter::once(None).chain(comparisons.into_iter().map(Some));
        for ((lock, series), comparison) in locks.iter().zip(series).zip(comparisons) {
            let Some(median) = Median::of(&series.values) else { continue };
            let mechanism = Mechanism::Lock(lock.clone());
            let mut record = Measurement::new("mariadb", mechanism, "op/s", median.value);
            (record.low, record.high) = median.interval.unzip();
            record.threads = point.terminals.into();
            record.update = Some(point.mix.updating_percent().into());
            record.repetitions = series.values.len() as u32;
            record.seed = Some(seed);
            let numbers = [
                ("cpus", point.cpus as f64),
                ("spin_rounds", point.spin.rounds.into()),
                ("spin_delay", point.spin.delay.into()),
            ];
            record.parameters.extend(numbers.map(|(name, n)| (name.to_owned(), n.into())));
            if let Some(comparison) = comparison {
                let (low, high) = comparison.interval.unzip();
                let ratio = Metric { value: comparison.ratio, unit: "ratio".into(), low, high };
                record.metrics.insert("ratio".into(), ratio);
                record
                    .parameters
                    .insert("verdict".into(), comparison.verdict.to_string().as_str().into());
            }
            record.metrics.extend(shares(series));
            records.push(record);
        }
    }
    Ok(Results::of_this_host(records))
}

/// The division of the server's CPU time in the counted run, in percent. For glibc's locks it is
/// not known.
fn shares(series: &Series) -> impl Iterator<Item = (String, Metric)> {
    let split = series.rehearsed.filter(|split| split.counted).map(|split| {
        let all = split.kernel + split.user;
        let of_all = |part: f64| 100.0 * part / all.max(f64::MIN_POSITIVE);
        let lock = split.lock_spin.min(all);
        // A wait's CPU time is not known by kernel and program: it is taken from both alike.
        let rest = 1.0 - lock / all.max(f64::MIN_POSITIVE);
        [
            ("cpu_kernel", of_all(split.kernel * rest)),
            ("cpu_program", of_all(split.user * rest)),
            ("cpu_locks", of_all(lock)),
        ]
    });
    let metric = |value| Metric { value, unit: "%".into(), low: None, high: None };
    split.into_iter().flatten().map(move |(name, value)| (name.to_owned(), metric(value)))
}

/// A table for each point.
pub fn render(results: &Results) -> String {
    let mut text = String::new();
    let mut last = None;
    let mut members: Vec<&Measurement> = Vec::new();
    for record in &results.measurements {
        let point = heading(record);
        if last.as_ref().is_some_and(|last| *last != point) {
            text += &table(last.as_ref(), &members);
            members.clear();
        }
        members.push(record);
        last = Some(point);
    }
    text + &table(last.as_ref(), &members)
}

fn heading(record: &Measurement) -> String {
    let number = |name: &str| record.number(name).unwrap_or_default();
    let cpus = number("cpus");
    format!(
        "{} terminals on {cpus} CPU{}, {} % of the transactions updating, InnoDB's own spin {}/{}, {} runs",
        record.threads,
        if cpus == 1.0 { "" } else { "s" },
        record.update.unwrap_or_default(),
        number("spin_rounds"),
        number("spin_delay"),
        record.repetitions
    )
}

fn table(heading: Option<&String>, members: &[&Measurement]) -> String {
    let Some(heading) = heading else { return String::new() };
    let numbers = ["transactions", "of glibc's", "95 %", "kernel", "program", "lock"];
    let columns = [Column::words("lock")].into_iter().chain(numbers.map(Column::number));
    let mut table = Table::new(columns.chain([Column::words("verdict")]));
    for record in members {
        let metric = |name: &str| record.metrics.get(name);
        let share = |name: &str| metric(name).map_or(String::new(), |m| quantity(m.value, "%"));
        let of_base = metric("ratio");
        let cells = [
            record.mechanism.name().to_owned(),
            quantity(record.value, "op/s").replace("op/s", "tx/s"),
            of_base.map_or(String::new(), |m| ratio(m.value)),
            of_base.map_or(String::new(), |m| interval(m.low, m.high)),
            share("cpu_kernel"),
            share("cpu_program"),
            share("cpu_locks"),
            record.name("verdict").unwrap_or("base line").to_owned(),
        ];
        table.row(cells.map(Cell::from));
    }
    format!("{heading}\n{table}\n\n")
}

//! Results of moved system calls, as records and as tables.

use manycore_measure::paired::{Median, Protocol};
use manycore_measure::{
    Cell, Column, Measurement, Mechanism, Metric, Results, Table, duration, interval, quantity,
    ratio,
};

use super::policy::Policy;
use super::{Measured, Options, Part};
use manycore_launch::failure::{Failure, Result};

/// A record for each policy at each point.
pub fn results(policies: &[Policy], measured: &[Measured], options: &Options) -> Result<Results> {
    let mut records = Vec::new();
    for Measured { point, values } in measured {
        let series: Vec<&[f64]> = values.iter().map(|values| &values[..]).collect();
        let comparisons = Protocol::new(point.part.better()).compare_all(series[0], &series[1..]);
        let comparisons =
            comparisons.map_err(|error| Failure::failed(format!("{point}: {error}")))?;
        let comparisons = std::iter::once(None).chain(comparisons.into_iter().map(Some));
        for ((policy, values), comparison) in policies.iter().zip(series).zip(comparisons) {
            let Some(median) = Median::of(values) else { continue };
            let mechanism = Mechanism::Sync(policy.to_string());
            let mut record =
                Measurement::new(workload(point.part), mechanism, unit(point.part), median.value);
            (record.low, record.high) = median.interval.unzip();
            record.repetitions = values.len() as u32;
            record.seed = Some(options.seed);
            if point.part == Part::Apache {
                record.threads = point.level as u32;
                record.parameters.insert("loops".into(), f64::from(options.loops).into());
            } else {
                record.parameters.insert("message_bytes".into(), (point.level as f64).into());
            }
            record.parameters.insert("driver".into(), point.driver.name().into());
            let time = point.driver.measures_for(options.time).as_nanos() as f64;
            record.parameters.insert("duration_ns".into(), time.into());
            if let Some(comparison) = comparison {
                let (low, high) = comparison.interval.unzip();
                let ratio = Metric { value: comparison.ratio, unit: "ratio".into(), low, high };
                record.metrics.insert("ratio".into(), ratio);
                let verdict = comparison.verdict.to_string();
                record.parameters.insert("verdict".into(), verdict.as_str().into());
            }
            records.push(record);
        }
    }
    Ok(Results::of_this_host(records))
}

fn workload(part: Part) -> &'static str {
    match part {
        Part::Bandwidth => "syscalls-bandwidth",
        Part::Latency => "syscalls-latency",
        Part::Apache => "syscalls-apache",
    }
}

fn unit(part: Part) -> &'static str {
    match part {
        Part::Bandwidth => "bytes/s",
        Part::Latency => "ns",
        Part::Apache => "op/s",
    }
}

/// The level of a record: the bytes of a message, or the number of clients.
pub fn level(record: &Measurement) -> usize {
    record.number("message_bytes").unwrap_or_else(|| record.threads.into()) as usize
}

/// A value as people write it.
fn value(record: &Measurement) -> String {
    match record.unit.as_str() {
        "bytes/s" => format!("{}/s", quantity(record.value, "bytes").trim_end()),
        "op/s" => quantity(record.value, "op/s").replace("op/s", "req/s"),
        _ => duration(record.value),
    }
}

/// Records of the same part and driver are neighbours.
pub fn is_same_panel(a: &Measurement, b: &Measurement) -> bool {
    a.workload == b.workload && a.name("driver") == b.name("driver")
}

/// A table for each part and driver.
pub fn render(results: &Results) -> String {
    results.measurements.chunk_by(is_same_panel).map(table).collect()
}

fn table(records: &[Measurement]) -> String {
    let first = &records[0];
    let (title, level_name) = match first.workload.as_str() {
        "syscalls-bandwidth" => ("Bandwidth of TCP on the loopback interface", "bytes"),
        "syscalls-latency" => ("Latency of TCP on the loopback interface, there and back", "bytes"),
        _ => ("Apache prefork with mod_php, a connection for each request", "clients"),
    };
    let time = manycore_measure::duration(first.number("duration_ns").unwrap_or_default());
    let columns = [
        Column::number(level_name),
        Column::words("policy"),
        Column::number("median"),
        Column::number("of none's"),
        Column::number("95 %"),
        Column::words("verdict"),
    ];
    let mut table = Table::new(columns);
    for record in records {
        let of_base = record.metrics.get("ratio");
        let cells = [
            level(record).to_string(),
            record.mechanism.name().to_owned(),
            value(record),
            of_base.map_or(String::new(), |m| ratio(m.value)),
            of_base.map_or(String::new(), |m| interval(m.low, m.high)),
            record.name("verdict").unwrap_or("base line").to_owned(),
        ];
        table.row(cells.map(Cell::from));
    }
    let counts = || records.iter().map(|record| record.repetitions);
    let rounds = match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
        (1, 1) => "1 round".to_owned(),
        (least, most) if least == most => format!("{most} rounds"),
        (least, most) => format!("{least} to {most} rounds"),
    };
    let driver = first.name("driver").unwrap_or_default();
    format!("{title}, by {driver}, {rounds} with runs of {}\n{table}\n\n", time.trim_end())
}

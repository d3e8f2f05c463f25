//! The results of `sim lock` for a person.

use manycore_measure::{Cell, Column, Measurement, Metric, Table, quantity, significant};

use super::SIMULATED_BASE;
use crate::heading::by_heading;
use crate::lock::in_words;

/// A table for each point, best lock first; with `details`, another one with the division of time
/// and the distances of lines.
pub fn render(measurements: &[Measurement], details: bool) -> String {
    let tables = by_heading(measurements, heading).into_iter().map(|(heading, mut members)| {
        members.sort_by(|a, b| b.value.total_cmp(&a.value));
        let causes = if details { format!("\n\n{}", causes(&members)) } else { String::new() };
        format!("{heading}\n{}{causes}\n", table(&members))
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// What all locks at a point have in common.
fn heading(measurement: &Measurement) -> String {
    let number = |name: &str| measurement.number(name).unwrap_or_default();
    let variants = match number("variants") {
        more if more > 1.0 => format!(", range over {more} variants of the machine"),
        _ => String::new(),
    };
    format!(
        "{} (simulated), {} CPUs: {}, {} counted{variants}",
        measurement.machine,
        number("cpus"),
        in_words(measurement),
        quantity(number("duration_ns"), "ns").trim_end(),
    )
}

fn table(members: &[&Measurement]) -> Table {
    let swept = members.iter().any(|member| member.low.is_some());
    let mut numbers = vec!["sections".to_owned(), format!("of {SIMULATED_BASE}")];
    numbers.extend(["p50 wait", "p99", "p99.9", "max", "max/min"].map(str::to_owned));
    if swept {
        numbers.insert(1, "range".into());
        numbers.insert(3, "range".into());
    }
    let numbers = numbers.iter().map(|name| Column::number(name));
    let mut table = Table::new([Column::words("lock")].into_iter().chain(numbers));
    for member in members {
        let own = Metric {
            value: member.value,
            unit: member.unit.clone(),
            low: member.low,
            high: member.high,
        };
        let metric = |name: &str| member.metrics.get(name);
        let text = |metric: Option<&Metric>| {
            metric.map_or(String::new(), |metric| quantity(metric.value, &metric.unit))
        };
        let mut row = vec![member.mechanism.name().to_owned()];
        for value in [Some(&own), metric("ratio")] {
            row.push(text(value));
            if swept {
                row.push(value.map_or(String::new(), range));
            }
        }
        let waits = ["wait_p50", "wait_p99", "wait_p99_9", "wait_max", "fairness"];
        row.extend(waits.map(|name| text(metric(name))));
        table.row(row.into_iter().map(Cell::from));
    }
    table
}

fn range(metric: &Metric) -> String {
    match (metric.low, metric.high) {
        (Some(low), Some(high)) => {
            format!("{} .. {}", quantity(low, &metric.unit), quantity(high, &metric.unit))
        }
        _ => String::new(),
    }
}

/// Where the threads' time goes, and the messages of a section.
fn causes(members: &[&Measurement]) -> Table {
    const TIMES: [(&str, &str); 7] = [
        ("compute", "time_compute"),
        ("stall", "time_stall"),
        ("lock spin", "time_lock_spin"),
        ("lock wait", "time_lock_wait"),
        ("system", "time_system"),
        ("ready", "time_ready"),
        ("idle", "time_idle"),
    ];
    let distances = (0..).map(|distance| format!("transfers_{distance}"));
    let distances: Vec<String> = distances
        .take_while(|name| members.iter().any(|member| member.metrics.contains_key(name)))
        .collect();
    let columns = TIMES.iter().map(|(name, _)| Column::number(&format!("{name} %")));
    let messages = (0..distances.len()).map(|distance| match distance {
        0 => Column::number("transfers within"),
        distance => Column::number(&format!("at distance {distance}")),
    });
    let last = ["from memory", "combined"].map(Column::number);
    let columns = [Column::words("lock")].into_iter().chain(columns).chain(messages).chain(last);
    let mut table = Table::new(columns);
    for member in members {
        let number = |name: &str| member.metrics.get(name).map_or(0.0, |metric| metric.value);
        let short = |value: f64| if value < 0.005 { "0".to_owned() } else { significant(value, 2) };
        let memory: f64 = (0..distances.len()).map(|d| number(&format!("memory_{d}"))).sum();
        let mut row = vec![Cell::from(member.mechanism.name())];
        row.extend(TIMES.iter().map(|(_, name)| Cell::from(short(number(name)))));
        row.extend(distances.iter().map(|name| Cell::from(short(number(name)))));
        row.extend([memory, number("combined")].map(|value| Cell::from(short(value))));
        table.row(row);
    }
    table
}

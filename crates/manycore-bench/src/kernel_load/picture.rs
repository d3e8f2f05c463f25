//! Results of loads on the kernel, drawn: throughput beside a linear one, and the locks with waits.

use manycore_measure::{Axis, Bars, Figure, Line, Lines, Measurement, Panel, Results, Value};

use super::output::{Wording, loads, most_waited, usable, wait_of};

/// Locks that have a colour of their own.
const LOCKS: usize = 7;

/// Two panels for each load, the second one only if the kernel was observed.
pub fn figure(subject: &Wording, results: &Results) -> Figure {
    let mut panels = Vec::new();
    for (name, records) in loads(results) {
        let title = |what: &str| match name.is_empty() {
            true => what.to_owned(),
            false => format!("{what}: {name}"),
        };
        panels.push(throughput(subject, records, title("Throughput")));
        if records.iter().any(|record| record.metrics.contains_key("kernel_wait")) {
            panels.push(locks(subject, records, title("Waits for locks of the kernel")));
        }
    }
    let host = results.host.as_ref().map(|host| format!(", {host}")).unwrap_or_default();
    Figure { title: format!("manycore bench {}{host}", subject.workload), panels }
}

fn axis(subject: &Wording, records: &[Measurement], measures: String) -> Axis {
    let places = records.iter().map(|record| record.threads.to_string()).collect();
    Axis { name: subject.those.to_owned(), places, measures }
}

fn throughput(subject: &Wording, records: &[Measurement], title: String) -> Panel {
    let scaled = |value: f64| value * subject.per;
    let measured = records.iter().map(|record| {
        let interval = record.low.zip(record.high).map(|(low, high)| (scaled(low), scaled(high)));
        Some(Value { value: scaled(record.value), interval })
    });
    let base = records[0].value / usable(records[0].threads);
    let linear = records
        .iter()
        .map(|record| Some(Value { value: scaled(base * usable(record.threads)), interval: None }));
    let line = |name: &str, values, is_ideal| Line { name: name.to_owned(), values, is_ideal };
    Panel::Lines(Lines {
        title,
        axis: axis(subject, records, format!("{} {}", subject.operations, subject.unit)),
        lines: vec![
            line("measured", measured.collect(), false),
            line("linear, up to the CPUs", linear.collect(), true),
        ],
    })
}

fn locks(subject: &Wording, records: &[Measurement], title: String) -> Panel {
    let first = most_waited(records, LOCKS);
    let mut parts: Vec<(String, Vec<f64>)> = first
        .iter()
        .map(|lock| {
            let name = lock.split_once(':').map_or(*lock, |(_, name)| name);
            (name.to_owned(), records.iter().map(|record| wait_of(record, lock)).collect())
        })
        .collect();
    let others = records.iter().map(|record| {
        let all = record.metrics.get("kernel_wait").map_or(0.0, |metric| metric.value);
        let shown: f64 = first.iter().map(|lock| wait_of(record, lock)).sum();
        (all - shown).max(0.0)
    });
    parts.push(("other locks".to_owned(), others.collect()));
    Panel::Bars(Bars {
        title,
        axis: axis(subject, records, format!("% of the {}' time", subject.those)),
        parts,
    })
}

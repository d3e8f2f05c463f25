//! Results of moved system calls, drawn as figures 4 to 6 of the publication: a line for each
//! policy.

use manycore_measure::{Axis, Figure, Line, Lines, Measurement, Panel, Results, Value};

use super::output::{is_same_panel, level};

/// A panel for each part.
pub fn figure(results: &Results) -> Figure {
    let parts = results.measurements.chunk_by(is_same_panel);
    let host = results.host.as_ref().map(|host| format!(", {host}")).unwrap_or_default();
    Figure { title: format!("manycore bench syscalls{host}"), panels: parts.map(panel).collect() }
}

fn panel(records: &[Measurement]) -> Panel {
    // A unit of a size that suits the axis.
    let (title, name, measures, scale) = match records[0].workload.as_str() {
        "syscalls-bandwidth" => ("Bandwidth", "bytes of a message", "MB/s", 1e-6),
        "syscalls-latency" => ("Latency", "bytes of a message", "us there and back", 1e-3),
        _ => ("Apache", "clients", "requests a second", 1.0),
    };
    let mut levels: Vec<usize> = records.iter().map(level).collect();
    levels.dedup();
    let mut policies: Vec<&str> = Vec::new();
    for record in records {
        let policy = record.mechanism.name();
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    let line = |policy: &str| {
        let at = |wanted: &usize| {
            let record = records
                .iter()
                .find(|record| level(record) == *wanted && record.mechanism.name() == policy)?;
            let interval = record.low.zip(record.high).map(|(a, b)| (a * scale, b * scale));
            Some(Value { value: record.value * scale, interval })
        };
        Line { name: policy.to_owned(), values: levels.iter().map(at).collect(), is_ideal: false }
    };
    Panel::Lines(Lines {
        title: records[0].name("driver").map_or(title.to_owned(), |d| format!("{title}, by {d}")),
        axis: Axis {
            name: name.to_owned(),
            places: levels.iter().map(usize::to_string).collect(),
            measures: measures.to_owned(),
        },
        lines: policies.into_iter().map(line).collect(),
    })
}

#[cfg(test)]
mod tests {
    use manycore_measure::Mechanism;

    use super::*;

    fn record(workload: &str, policy: &str, level: u32, value: f64) -> Measurement {
        let unit = if workload == "syscalls-apache" { "op/s" } else { "ns" };
        let mechanism = Mechanism::Sync(policy.into());
        let mut record = Measurement::new(workload, mechanism, unit, value);
        match workload {
            "syscalls-apache" => record.threads = level,
            _ => _ = record.parameters.insert("message_bytes".into(), f64::from(level).into()),
        }
        record
    }

    #[test]
    fn a_panel_for_each_part_and_a_line_for_each_policy() {
        let mut records = Vec::new();
        for (workload, levels) in [("syscalls-latency", [64, 4096]), ("syscalls-apache", [1, 256])]
        {
            for level in levels {
                for policy in ["none", "auto"] {
                    records.push(record(workload, policy, level, 2_000.0));
                }
            }
        }
        let figure = figure(&Results::new(records));
        let described: Vec<_> = figure
            .panels
            .iter()
            .map(|panel| {
                let Panel::Lines(lines) = panel else { panic!("{panel:?}") };
                let first = lines.lines[0].values[0].unwrap().value;
                (lines.title.as_str(), lines.axis.places.join(" "), lines.lines.len(), first)
            })
            .collect();
        let expected =
            [("Latency", "64 4096".to_owned(), 2, 2.0), ("Apache", "1 256".to_owned(), 2, 2000.0)];
        assert_eq!(described, expected);
    }
}

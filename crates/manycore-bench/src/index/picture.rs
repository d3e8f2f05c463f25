//! The results of `bench index` and `sim index`, drawn: throughput by the number of threads.

use manycore_measure::{Axis, Figure, Line, Lines, Measurement, Panel, Value};

use crate::heading::by_heading;

/// A panel for each workload, with a line for each mechanism.
pub(crate) fn figure(title: String, measurements: &[Measurement]) -> Figure {
    let mix = |record: &Measurement| record.name("mix").unwrap_or_default().to_owned();
    let panels =
        by_heading(measurements, mix).into_iter().map(|(mix, members)| panel(mix, &members));
    Figure { title, panels: panels.collect() }
}

fn panel(title: String, members: &[&Measurement]) -> Panel {
    let (mut threads, mut names) = (Vec::new(), Vec::new());
    for member in members {
        if !threads.contains(&member.threads) {
            threads.push(member.threads);
        }
        if !names.contains(&member.mechanism.name()) {
            names.push(member.mechanism.name());
        }
    }
    let millions = |value: f64| value / 1e6;
    let value = |member: &Measurement| Value {
        value: millions(member.value),
        interval: member.low.zip(member.high).map(|(low, high)| (millions(low), millions(high))),
    };
    let line = |name: &&str| {
        let at = |threads: &u32| {
            let is_meant = |member: &&&Measurement| {
                member.mechanism.name() == *name && member.threads == *threads
            };
            members.iter().find(is_meant).map(|member| value(member))
        };
        Line { name: (*name).to_owned(), values: threads.iter().map(at).collect(), is_ideal: false }
    };
    Panel::Lines(Lines {
        title,
        axis: Axis {
            name: "threads".to_owned(),
            places: threads.iter().map(u32::to_string).collect(),
            measures: "million operations a second".to_owned(),
        },
        lines: names.iter().map(line).collect(),
    })
}

#[cfg(test)]
mod tests {
    use manycore_measure::Mechanism;

    use super::*;

    #[test]
    fn a_panel_for_each_workload_and_a_line_for_each_mechanism() {
        let record = |mix: &str, sync: &str, threads, value| {
            let sync = Mechanism::Sync(sync.to_owned());
            let mut record = Measurement::new("index", sync, "op/s", value);
            record.threads = threads;
            record.parameters.insert("mix".to_owned(), mix.into());
            record
        };
        let records = [
            record("ycsb-a", "mvrlu", 1, 2e6),
            record("ycsb-a", "rwlock", 1, 3e6),
            record("ycsb-a", "mvrlu", 8, 4e6),
            record("ycsb-c", "mvrlu", 1, 5e6),
        ];
        let figure = figure("t".to_owned(), &records);
        let [Panel::Lines(a), Panel::Lines(c)] = figure.panels.as_slice() else { panic!() };
        assert_eq!((a.title.as_str(), c.title.as_str()), ("ycsb-a", "ycsb-c"));
        assert_eq!(a.axis.places, ["1", "8"]);
        let values =
            |line: &Line| line.values.iter().map(|v| v.map(|v| v.value)).collect::<Vec<_>>();
        assert_eq!(values(&a.lines[0]), [Some(2.0), Some(4.0)]);
        assert_eq!(
            (a.lines[1].name.as_str(), values(&a.lines[1])),
            ("rwlock", vec![Some(3.0), None])
        );
    }
}

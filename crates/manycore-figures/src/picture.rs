//! What came out, as lines and bars.

use manycore_measure::{Axis, Bars, Figure, Line, Lines, Measurement, Panel, Value};

use crate::field::{Coordinate, Field};
use crate::run::Reproduction;

/// The uses of threads' time: a label, and the metrics whose sum it is.
const TIMES: [(&str, &[&str]); 7] = [
    ("work", &["time_compute"]),
    ("waiting for lines", &["time_stall"]),
    ("spinning", &["time_lock_spin"]),
    ("asleep for a lock", &["time_lock_wait"]),
    ("grace periods", &["time_quiescence_wait"]),
    ("logs", &["time_log_work"]),
    ("system, no CPU, idle", &["time_system", "time_ready", "time_idle"]),
];

/// The pictures of a figure, each with a name for its file.
pub(crate) fn of(found: &Reproduction) -> Vec<(String, Figure)> {
    let mut pictures: Vec<(String, Figure)> = Vec::new();
    let mut add = |panel: Panel| {
        let name = format!("{}-{}", found.figure.id, pictures.len() + 1);
        pictures.push((name, Figure { title: String::new(), panels: vec![panel] }));
    };
    let all: Vec<&Measurement> = found.measurements.iter().collect();
    let panels = panels(&found.figure.panels, String::new(), all);
    panels.iter().for_each(|(title, records)| add(lines(found.figure.x, title, records)));
    if let Some((title, records)) = panels.last() {
        add(times(found.figure.x, title, records));
        waits(found.figure.x, title, records).into_iter().for_each(&mut add);
    }
    pictures
}

/// Divided by the places in these dimensions, in order.
fn panels<'a>(
    fields: &[Field],
    title: String,
    records: Vec<&'a Measurement>,
) -> Vec<(String, Vec<&'a Measurement>)> {
    let [field, others @ ..] = fields else { return vec![(title, records)] };
    let of_place = |place: &Coordinate| {
        let there = records.iter().copied().filter(|m| field.of(m).as_ref() == Some(place));
        let comma = if title.is_empty() { "" } else { ", " };
        panels(others, format!("{title}{comma}{} {place}", field.name()), there.collect())
    };
    field.places(records.iter().copied()).iter().flat_map(of_place).collect()
}

fn lines(x: Field, title: &str, records: &[&Measurement]) -> Panel {
    let places = x.places(records.iter().copied());
    let line = |series: &Coordinate| {
        let at = |place: &Coordinate| {
            let is_meant = |record: &&&Measurement| {
                x.of(record).as_ref() == Some(place)
                    && Field::Series.of(record).as_ref() == Some(series)
            };
            let record = records.iter().find(is_meant)?;
            Some(Value { value: record.value, interval: record.low.zip(record.high) })
        };
        let values = places.iter().map(at).collect();
        Line { name: series.to_string(), values, is_ideal: false }
    };
    Panel::Lines(Lines {
        title: title.to_owned(),
        axis: Axis {
            name: x.name().to_owned(),
            places: places.iter().map(Coordinate::to_string).collect(),
            measures: "operations a second, simulated".to_owned(),
        },
        lines: Field::Series.places(records.iter().copied()).iter().map(line).collect(),
    })
}

/// How each series spends its time, at the last coordinate.
fn times(x: Field, title: &str, records: &[&Measurement]) -> Panel {
    let last = x.places(records.iter().copied()).pop();
    let there: Vec<&Measurement> =
        records.iter().copied().filter(|record| x.of(record) == last).collect();
    let part = |(name, metrics): &(&str, &[&str])| {
        let sum = |record: &&Measurement| {
            metrics.iter().filter_map(|metric| Some(record.metrics.get(*metric)?.value)).sum()
        };
        ((*name).to_owned(), there.iter().map(sum).collect())
    };
    let last = last.map_or(String::new(), |place| format!("{} {place}", x.name()));
    let comma = if title.is_empty() { "" } else { ", " };
    Panel::Bars(Bars {
        title: format!("where time goes: {title}{comma}{last}"),
        axis: Axis {
            name: String::new(),
            places: there.iter().map(|record| record.mechanism.name().to_owned()).collect(),
            measures: "% of the threads' time, simulated".to_owned(),
        },
        parts: TIMES.iter().map(part).collect(),
    })
}

/// The locks with waits, where locks have names: for each such lock its share at each coordinate.
fn waits(x: Field, title: &str, records: &[&Measurement]) -> Option<Panel> {
    const PREFIX: &str = "share_wait_";
    let named = |record: &Measurement| -> Vec<String> {
        let names = record.metrics.keys().filter_map(|name| name.strip_prefix(PREFIX));
        names.map(str::to_owned).collect()
    };
    let with_names: Vec<&Measurement> =
        records.iter().copied().filter(|record| !named(record).is_empty()).collect();
    let all = named(with_names.first()?);
    // If a lock is taken in two ways, both ways are drawn, and not their sum.
    let is_sum = |name: &&String| all.iter().any(|other| other.starts_with(&format!("{name}_")));
    let locks = all.iter().filter(|name| !is_sum(name));
    let part = |name: &String| {
        let share = |record: &&Measurement| {
            let metric = record.metrics.get(&format!("{PREFIX}{name}"));
            metric.map_or(0.0, |metric| metric.value)
        };
        (name.replace('_', " "), with_names.iter().map(share).collect())
    };
    let comma = if title.is_empty() { "" } else { ": " };
    Some(Panel::Bars(Bars {
        title: format!("which locks are waited for{comma}{title}"),
        axis: Axis {
            name: x.name().to_owned(),
            places: with_names
                .iter()
                .filter_map(|record| Some(x.of(record)?.to_string()))
                .collect(),
            measures: "% of all waiting for locks, simulated".to_owned(),
        },
        parts: locks.map(part).collect(),
    }))
}

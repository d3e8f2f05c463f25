//! The database's results, drawn as in "Locking in Practice": throughput by lock over the
//! multiprogramming level, and for each level where the server's CPU time went; and over InnoDB's
//! own spin, where that varies.

use manycore_measure::{Axis, Bars, Figure, Line, Lines, Measurement, Panel, Results, Value};

const MEASURE: &str = "transactions a second";

const PARTS: [(&str, &str); 3] =
    [("kernel", "cpu_kernel"), ("program", "cpu_program"), ("locks", "cpu_locks")];

/// Draws, for each mix, number of CPUs and level, a panel of throughput over InnoDB's spin, if
/// there are several spins; and for each spin a panel of throughput over the level, and a panel of
/// CPU time for each level.
pub fn figure(results: &Results) -> Figure {
    let mut panels = over_spin(&results.measurements);
    for situation in distinct(&results.measurements, situation) {
        let here: Vec<_> = results
            .measurements
            .iter()
            .filter(|record| self::situation(record) == situation)
            .collect();
        let levels = distinct(here.iter().copied(), |record| record.threads);
        let axis = Axis {
            name: "terminals".into(),
            places: levels.iter().map(u32::to_string).collect(),
            measures: MEASURE.into(),
        };
        panels.push(throughput(&situation, axis, &here, |record| record.threads.to_string()));
        for level in levels {
            let at_level: Vec<_> =
                here.iter().copied().filter(|record| record.threads == level).collect();
            // Nothing is counted for glibc's own locks.
            if at_level.iter().any(|record| share(record, PARTS[0].1).is_some()) {
                panels.push(cpu_time(&format!("{level} terminals, {situation}"), &at_level));
            }
        }
    }
    let host = results.host.as_ref().map(|host| format!(", {host}")).unwrap_or_default();
    Figure { title: format!("manycore bench mariadb{host}"), panels }
}

/// The distinct values of the records, in the order of their first appearance.
fn distinct<'a, T: PartialEq>(
    records: impl IntoIterator<Item = &'a Measurement>,
    of: impl Fn(&Measurement) -> T,
) -> Vec<T> {
    let mut found = Vec::new();
    for value in records.into_iter().map(of) {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// A panel for each mix, number of CPUs and level: throughput over InnoDB's spin.
fn over_spin(records: &[Measurement]) -> Vec<Panel> {
    let spins = distinct(records, spin);
    if spins.len() < 2 {
        return Vec::new();
    }
    let place = |record: &Measurement| format!("{}, {} terminals", machine(record), record.threads);
    let panel = |place_here: String| {
        let here: Vec<_> = records.iter().filter(|record| place(record) == place_here).collect();
        let axis = Axis {
            name: "InnoDB's spin, rounds/delay".into(),
            places: spins.clone(),
            measures: MEASURE.into(),
        };
        throughput(&place_here, axis, &here, spin)
    };
    distinct(records, place).into_iter().map(panel).collect()
}

/// All but the lock and the terminals.
fn situation(record: &Measurement) -> String {
    format!("{}, InnoDB's spin {}", machine(record), spin(record))
}

fn machine(record: &Measurement) -> String {
    let cpus = record.number("cpus").unwrap_or_default();
    let plural = if cpus == 1.0 { "" } else { "s" };
    format!("{} % updating, {cpus} CPU{plural}", record.update.unwrap_or_default())
}

fn spin(record: &Measurement) -> String {
    let number = |name: &str| record.number(name).unwrap_or_default();
    format!("{}/{}", number("spin_rounds"), number("spin_delay"))
}

/// A line for each lock, over the positions of the axis.
fn throughput(
    title: &str,
    axis: Axis,
    here: &[&Measurement],
    place: impl Fn(&Measurement) -> String,
) -> Panel {
    let locks = distinct(here.iter().copied(), |record| record.mechanism.name().to_owned());
    let line = |lock: String| {
        let at = |at: &String| {
            let record = here.iter().find(|r| place(r) == *at && r.mechanism.name() == lock)?;
            Some(Value { value: record.value, interval: record.low.zip(record.high) })
        };
        Line { values: axis.places.iter().map(at).collect(), name: lock, is_ideal: false }
    };
    let lines = locks.into_iter().map(line).collect();
    Panel::Lines(Lines { title: format!("Throughput: {title}"), axis, lines })
}

fn share(record: &Measurement, name: &str) -> Option<f64> {
    Some(record.metrics.get(name)?.value)
}

fn cpu_time(title: &str, records: &[&Measurement]) -> Panel {
    let counted: Vec<_> =
        records.iter().filter(|record| share(record, PARTS[0].1).is_some()).collect();
    let part = |(name, metric): (&str, &str)| {
        let sizes = counted.iter().map(|record| share(record, metric).unwrap_or_default());
        (name.to_owned(), sizes.collect())
    };
    Panel::Bars(Bars {
        title: format!("CPU time: {title}"),
        axis: Axis {
            name: "lock".into(),
            places: counted.iter().map(|record| record.mechanism.name().to_owned()).collect(),
            measures: "% of the server's CPU time".into(),
        },
        parts: PARTS.map(part).to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use manycore_measure::{Mechanism, Metric};

    use super::*;

    fn record(lock: &str, terminals: u32, cpus: u32, value: f64) -> Measurement {
        let mut record = Measurement::new("mariadb", Mechanism::Lock(lock.into()), "op/s", value);
        (record.threads, record.update) = (terminals, Some(25.0));
        for (name, number) in [("cpus", cpus), ("spin_rounds", 30), ("spin_delay", 4)] {
            record.parameters.insert(name.into(), f64::from(number).into());
        }
        if lock != "glibc" {
            for (_, name) in PARTS {
                let metric = Metric { value: 100.0 / 3.0, unit: "%".into(), low: None, high: None };
                record.metrics.insert(name.into(), metric);
            }
        }
        record
    }

    #[test]
    fn a_line_for_each_lock_and_bars_for_each_that_was_counted() {
        let records =
            [10, 50].map(|level| ["glibc", "hybrid"].map(|lock| record(lock, level, 2, 5.0)));
        let figure = figure(&Results::new(records.concat()));
        assert_eq!(figure.panels.len(), 3, "throughput, and CPU time at two levels");
        let Panel::Lines(lines) = &figure.panels[0] else { panic!("{figure:?}") };
        let named: Vec<_> =
            lines.lines.iter().map(|line| (line.name.as_str(), line.values.len())).collect();
        assert_eq!(named, [("glibc", 2), ("hybrid", 2)]);
        let Panel::Bars(bars) = &figure.panels[2] else { panic!("{figure:?}") };
        assert!(bars.title.contains("50 terminals"), "{}", bars.title);
        assert_eq!(bars.axis.places, ["hybrid"]);
        let whole: f64 = bars.parts.iter().map(|(_, sizes)| sizes[0]).sum();
        assert!((whole - 100.0).abs() < 1e-9);
    }

    #[test]
    fn each_number_of_cpus_has_panels_of_its_own() {
        let records = [1, 4].map(|cpus| record("hybrid", 10, cpus, f64::from(cpus)));
        let figure = figure(&Results::new(records.to_vec()));
        let described = figure.panels.iter().map(|panel| match panel {
            Panel::Lines(lines) => {
                let values = lines.lines.iter().flat_map(|line| &line.values).flatten();
                (lines.title.as_str(), values.map(|value| value.value).sum())
            }
            Panel::Bars(bars) => (bars.title.as_str(), bars.axis.places.len() as f64),
            Panel::Map(map) => (map.title.as_str(), map.rows.len() as f64),
        });
        assert_eq!(
            described.collect::<Vec<_>>(),
            [
                ("Throughput: 25 % updating, 1 CPU, InnoDB's spin 30/4", 1.0),
                ("CPU time: 10 terminals, 25 % updating, 1 CPU, InnoDB's spin 30/4", 1.0),
                ("Throughput: 25 % updating, 4 CPUs, InnoDB's spin 30/4", 4.0),
                ("CPU time: 10 terminals, 25 % updating, 4 CPUs, InnoDB's spin 30/4", 1.0),
            ]
        );
    }
    #[test]
    fn spins_are_an_axis_where_there_are_several() {
        let mut records = Vec::new();
        for (delay, value) in [(4, 7.0), (6_000, 3.0)] {
            for lock in ["glibc", "futex"] {
                let mut record = record(lock, 10, 2, value);
                record.parameters.insert("spin_delay".into(), f64::from(delay).into());
                records.push(record);
            }
        }
        let figure = figure(&Results::new(records));
        let Panel::Lines(lines) = &figure.panels[0] else { panic!("{figure:?}") };
        assert_eq!(lines.title, "Throughput: 25 % updating, 2 CPUs, 10 terminals");
        assert_eq!(lines.axis.places, ["30/4", "30/6000"]);
        let values = lines.lines.iter().map(|line| {
            let values = line.values.iter().flatten().map(|value| value.value);
            (line.name.as_str(), values.collect::<Vec<_>>())
        });
        assert_eq!(
            values.collect::<Vec<_>>(),
            [("glibc", vec![7.0, 3.0]), ("futex", vec![7.0, 3.0])]
        );
    }
}

//! The results of the grid for a person.

use manycore_measure::{Cell, Claim, Column, Measurement, Table, Tone, duration, ratio};

use crate::heading::warning;
use crate::scorecard::Scorecard;

/// The contents of each table: a metric, in words and by name, and whether small values are good.
const SHOWN: [(&str, &str, bool); 3] = [
    ("throughput over glibc's", "ratio", false),
    ("p99.9 wait over glibc's", "wait_p99_9_ratio", true),
    ("max/min of threads over glibc's", "fairness_ratio", true),
];

/// Tables of ratios, locks by thread counts, and the claims.
pub fn render(found: &Scorecard) -> String {
    let mut text = String::new();
    let ours = |m: &&Measurement| crate::contender::is_ours(m.mechanism.name());
    for way in distinct(found.measurements.iter().filter(ours), |m| name(m, "through")) {
        for section in distinct(&found.measurements, |m| length(m, "section_ns")) {
            let of_table =
                |m: &&Measurement| length(m, "section_ns") == section && belongs(m, &way);
            let members: Vec<&Measurement> = found.measurements.iter().filter(of_table).collect();
            for (title, metric, less) in SHOWN {
                text += &format!(
                    "Sections of {section}, {way}: {title}\n{}\n\n",
                    table(&members, metric, less)
                );
            }
        }
    }
    text + &format!("{}\n{}", Claim::table(&found.claims), warning(&found.measurements))
}

/// Whether a record belongs to locks that were built in this way, or to a peer. Peers are built in
/// one way only.
fn belongs(measurement: &Measurement, way: &str) -> bool {
    name(measurement, "through") == way || !crate::contender::is_ours(measurement.mechanism.name())
}

fn name(measurement: &Measurement, parameter: &str) -> String {
    measurement.name(parameter).unwrap_or_default().to_owned()
}

fn length(measurement: &Measurement, parameter: &str) -> String {
    let length = measurement.number(parameter).map(duration).unwrap_or_default();
    length.trim_end().to_owned()
}

/// The different values, in the order of their first appearance.
fn distinct<'a, T: PartialEq>(
    measurements: impl IntoIterator<Item = &'a Measurement>,
    value: impl Fn(&Measurement) -> T,
) -> Vec<T> {
    let mut values = Vec::new();
    for value in measurements.into_iter().map(value) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn table(members: &[&Measurement], metric: &str, less_is_good: bool) -> Table {
    let mut threads: Vec<u32> = members.iter().map(|m| m.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let counts = threads.iter().map(|count| Column::number(&count.to_string()));
    let mut table = Table::new([Column::words("lock \\ threads")].into_iter().chain(counts));
    let mut locks: Vec<&str> = members.iter().map(|m| m.mechanism.name()).collect();
    locks.dedup();
    locks.sort_unstable();
    locks.dedup();
    for lock in locks {
        let of_row = |count: &u32| {
            let found = members.iter().find(|m| m.mechanism.name() == lock && m.threads == *count);
            found.and_then(|m| m.metrics.get(metric))
        };
        let cell = |count: &u32| match of_row(count) {
            Some(found) => Cell::new(ratio(found.value), tone(found.low, found.high, less_is_good)),
            None => Cell::from(""),
        };
        let cells: Vec<Cell> = threads.iter().map(cell).collect();
        if threads.iter().any(|count| of_row(count).is_some()) {
            table.row([Cell::from(lock)].into_iter().chain(cells));
        }
    }
    table
}

/// Coloured only where the interval leaves no doubt.
fn tone(low: Option<f64>, high: Option<f64>, less_is_good: bool) -> Tone {
    let (above, below) = (low.is_some_and(|low| low > 1.0), high.is_some_and(|high| high < 1.0));
    match (above, below) {
        (true, _) => [Tone::Good, Tone::Bad][usize::from(less_is_good)],
        (_, true) => [Tone::Bad, Tone::Good][usize::from(less_is_good)],
        _ => Tone::Plain,
    }
}

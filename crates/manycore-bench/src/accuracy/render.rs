//! Tables of the study of locks.

use manycore_measure::{Cell, Claim, Column, Table, Tone, duration, significant};

use super::LockAccuracy;
use super::comparison::{Comparison, errors, median, order, p90};
use super::judge::THREADS;
use crate::lock::Point;
use crate::work::{Length, Spread};

/// Errors by threads, by lock and by workload, the checks of the simulator's consistency, and the
/// claims.
pub fn render(found: &LockAccuracy) -> String {
    format!(
        "{}\n\n{}\n{}\n\nConstants of the model that are not measured:\n{}\n\n{}\n",
        tables(&found.comparisons, "lock", "section, between, locks"),
        parking(&found.parking),
        bands(&found.bands),
        found.assumed.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"),
        Claim::table(&found.claims),
    )
}

/// Errors by threads, by mechanism and by workload.
pub(crate) fn tables(comparisons: &[Comparison], mechanism: &str, workload: &str) -> String {
    let few = |c: &&Comparison| c.threads <= THREADS;
    let by_threads = by(comparisons.iter(), |c| c.threads.to_string());
    let by_mechanism = by(comparisons.iter().filter(few), |c| c.mechanism.clone());
    let by_workload = by(comparisons.iter().filter(few), |c| c.workload.clone());
    format!(
        "Throughput, simulated against native, by threads\n{}\n\n\
         By {mechanism}, 1 and 2 threads\n{}\n\nBy workload, 1 and 2 threads\n{}",
        table("threads", by_threads),
        table(mechanism, by_mechanism),
        table(workload, by_workload),
    )
}

type Row<'a> = (String, Vec<&'a Comparison>);

/// A row for each name, in the order of their first comparison.
fn by<'a>(
    comparisons: impl Iterator<Item = &'a Comparison>,
    name: impl Fn(&Comparison) -> String,
) -> Vec<Row<'a>> {
    let mut rows: Vec<Row> = Vec::new();
    for comparison in comparisons {
        let name = name(comparison);
        match rows.iter_mut().find(|(own, _)| *own == name) {
            Some((_, members)) => members.push(comparison),
            None => rows.push((name, vec![comparison])),
        }
    }
    rows
}

/// A workload of locks in words.
pub(crate) fn name(point: &Point) -> String {
    let length = |length: Length| {
        let about = if length.spread == Spread::Exponential { "about " } else { "" };
        format!("{about}{}", duration(length.mean_ns).trim_end())
    };
    format!("{}, {}, {}", length(point.section), length(point.outside), point.locks)
}

fn table(what: &str, rows: Vec<Row>) -> Table {
    let numbers = ["compared", "median error", "p90", "worst"].map(Column::number);
    let columns = [Column::words(what)].into_iter().chain(numbers);
    let last = [Column::words("worst is"), Column::number("order agrees")];
    let mut table = Table::new(columns.chain(last));
    for (name, members) in rows {
        let sorted = errors(members.iter().copied());
        let worst = members.iter().max_by(|a, b| a.error().total_cmp(&b.error()));
        let (same, pairs) = order(members.iter().copied());
        let order = if pairs == 0 { String::new() } else { format!("{same} of {pairs}") };
        table.row([
            Cell::from(name),
            members.len().to_string().into(),
            median(&sorted).map_or(String::new(), percent).into(),
            p90(&sorted).map_or(String::new(), percent).into(),
            worst.map_or(String::new(), |worst| percent(worst.error())).into(),
            Cell::new(worst.map_or(String::new(), |worst| described(worst)), Tone::Faint),
            order.into(),
        ]);
    }
    table
}

fn described(worst: &Comparison) -> String {
    let ratio = significant(worst.simulated / worst.native, 3);
    format!("{}, {} threads, {}: {ratio} of native", worst.mechanism, worst.threads, worst.workload)
}

fn percent(share: f64) -> String {
    format!("{} %", significant(100.0 * share, 2))
}

fn parking(pairs: &[(f64, f64)]) -> String {
    let mut changes: Vec<f64> = pairs.iter().map(|(a, b)| (a / b - 1.0).abs()).collect();
    changes.sort_unstable_by(f64::total_cmp);
    let show = |value: Option<f64>| value.map_or("unknown".to_owned(), percent);
    format!(
        "Parked against polling every turn, 2 threads, with and without hold: {} simulations differ by {} in the median, \
         p90 {}, at most {}",
        changes.len(),
        show(median(&changes)),
        show(p90(&changes)),
        show(changes.last().copied()),
    )
}

fn bands(bands: &[(f64, [f64; 2])]) -> String {
    let inside = bands.iter().filter(|(native, [low, high])| (low..=high).contains(&native));
    let mut widths: Vec<f64> = bands.iter().map(|(_, [low, high])| high / low).collect();
    widths.sort_unstable_by(f64::total_cmp);
    let show = |value: Option<f64>| value.map_or("unknown".to_owned(), |v| significant(v, 3));
    format!(
        "Over 18 variants of the machine, 2 threads: from least to most by a factor of {} in the median, p90 {}; \
         {} of {} native results lie within",
        show(median(&widths)),
        show(p90(&widths)),
        inside.count(),
        bands.len(),
    )
}

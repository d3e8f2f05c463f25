//! A prediction for a person.

use std::fmt::Write;

use manycore_measure::{Cell, Column, Measurement, Metric, Table, quantity, significant};

use super::{FAR, Limit, Prediction, full};

/// The model agrees well enough with the observed run within this factor.
const NEAR: f64 = 1.5;

/// The modelled program, and how well the model agrees with the observed run; the speedups; and
/// their meaning.
pub fn render(prediction: &Prediction, title: &str) -> String {
    let records = &prediction.found.measurements;
    let mut text = format!("{title}\n{}", basis(prediction));
    for assumption in &prediction.workload.assumed {
        let _ = writeln!(text, "Assumed: {assumption}.");
    }
    let curves = curves(records);
    if curves.is_empty() {
        return text;
    }
    let _ = write!(
        text,
        "\nThroughput over that of one thread, by threads on as many CPUs:\n{}\n\n",
        table(&curves)
    );
    let _ = writeln!(text, "{}", finding(&curves, prediction.limit.as_ref()));
    text
}

/// The inputs of the model, and its result for the run from which it was made.
fn basis(prediction: &Prediction) -> String {
    let workload = &prediction.workload;
    let mix = &workload.mix;
    let ns = |ns: f64| quantity(ns, "ns").trim_end().to_owned();
    let think = match mix.think_ns / f64::from(mix.sections) {
        idle if idle >= 1.0 => format!(", idle for {}", ns(idle)),
        _ => String::new(),
    };
    let check = prediction.check.map_or_else(String::new, |check| {
        let ratio = check / workload.observed;
        let far = match (1.0 / NEAR..=NEAR).contains(&ratio) {
            true => "",
            false => ": the rest is as far off, or the host did other things meanwhile",
        };
        format!("; the model of that does {} times as much{far}", significant(ratio, 2))
    });
    format!(
        "A thread takes one of {} locks for {} on average, works for {}{think}, and again.\n\
         The profile has {}{check}.\n",
        mix.locks.len(),
        ns(mix.section_mean_ns()),
        ns(mix.outside.mean_ns),
        quantity(workload.observed, "op/s").replace("op/s", "sections/s"),
    )
}

/// The records of one lock, fewest threads first.
struct Curve<'a> {
    lock: &'a str,
    points: Vec<(&'a Measurement, &'a Metric)>,
}

impl<'a> Curve<'a> {
    /// The point with the most throughput.
    fn most(&self) -> (&'a Measurement, &'a Metric) {
        let most = self.points.iter().max_by(|a, b| a.1.value.total_cmp(&b.1.value));
        *most.expect("a curve has points")
    }

    /// The first point with nearly the highest throughput: beyond it the program does not scale.
    fn full(&self) -> &'a Measurement {
        let records: Vec<_> = self.points.iter().map(|point| point.0).collect();
        records[full(&records).expect("a curve has points")]
    }

    /// Whether throughput still grew at the last point, and was near the possible throughput of
    /// this many threads.
    fn scales_on(&self) -> bool {
        let (last, speedup) = self.points.last().expect("a curve has points");
        self.full().threads == last.threads && speedup.value >= FAR * f64::from(last.threads)
    }
}

/// A curve for each lock that has a record with one thread to compare with.
fn curves(records: &[Measurement]) -> Vec<Curve<'_>> {
    let mut curves: Vec<Curve> = Vec::new();
    for record in records {
        let Some(speedup) = record.metrics.get("ratio") else { continue };
        let lock = record.mechanism.name();
        match curves.iter_mut().find(|curve| curve.lock == lock) {
            Some(curve) => curve.points.push((record, speedup)),
            None => curves.push(Curve { lock, points: vec![(record, speedup)] }),
        }
    }
    curves
}

fn table(curves: &[Curve]) -> Table {
    let mut threads: Vec<u32> = Vec::new();
    threads
        .extend(curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0.threads)));
    threads.sort_unstable();
    threads.dedup();
    let counts = threads.iter().map(|count| Column::number(&count.to_string()));
    let last = ["most", "range", "reached at"].map(Column::number);
    let mut table = Table::new([Column::words("lock")].into_iter().chain(counts).chain(last));
    for curve in curves {
        let at = |count: &u32| {
            let point = curve.points.iter().find(|point| point.0.threads == *count);
            Cell::from(point.map_or(String::new(), |(_, speedup)| significant(speedup.value, 3)))
        };
        let most = curve.most().1;
        let full = match curve.scales_on() {
            true => format!("{} or beyond", curve.full().threads),
            false => curve.full().threads.to_string(),
        };
        let ends = [times(most.value), range(most), full].map(Cell::from);
        table.row([Cell::from(curve.lock)].into_iter().chain(threads.iter().map(at)).chain(ends));
    }
    table
}

fn times(ratio: f64) -> String {
    format!("{}x", significant(ratio, 3))
}

fn range(metric: &Metric) -> String {
    match (metric.low, metric.high) {
        (Some(low), Some(high)) => format!("{} .. {}", times(low), times(high)),
        _ => String::new(),
    }
}

/// Where the program's own lock stops scaling, and why, and whether another lock would scale
/// further.
fn finding(curves: &[Curve], limit: Option<&Limit>) -> String {
    let own = &curves[0];
    let (_, most) = own.most();
    let full = own.full();
    let stops = match own.scales_on() {
        true => format!(
            "With {} the locks let it scale to {} threads: {} ({}).",
            own.lock,
            full.threads,
            times(most.value),
            range(most)
        ),
        false => format!(
            "With {} it gets to {} of one thread ({}), with {} threads{}.",
            own.lock,
            times(most.value),
            range(most),
            full.threads,
            cause(limit)
        ),
    };
    let others = curves[1..].iter().max_by(|a, b| a.most().1.value.total_cmp(&b.most().1.value));
    let Some(best) = others else { return stops };
    let (_, other) = best.most();
    let further = match (other.low, most.high) {
        (Some(low), Some(high)) if low > high => format!(
            " {} goes on to {} at {} threads ({}).",
            best.lock,
            times(other.value),
            best.full().threads,
            range(other)
        ),
        _ => " No other lock is ahead by more than the range.".to_owned(),
    };
    stops + &further
}

/// The lock that keeps it from going on.
fn cause(limit: Option<&Limit>) -> String {
    limit.map_or_else(String::new, |Limit { threads, lock, gain }| {
        format!(
            "; with {threads}, it would do {} as much if no thread had to wait for {lock}",
            times(*gain)
        )
    })
}

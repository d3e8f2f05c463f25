//! Results of loads on the kernel, as records and as tables.

use std::collections::BTreeMap;

use super::What;
use crate::cpus;
use manycore_kernel_trace::{KernelLock, Seen};
use manycore_measure::paired::{Better, Median, Protocol};
use manycore_measure::{
    Cell, Column, Measurement, Mechanism, Metric, Parameter, Results, Table, interval, quantity,
    ratio,
};
use manycore_profile::profile::Source;

use super::measured::{Measured, Profiled};
use manycore_launch::failure::{Failure, Result};
use manycore_profile::percent;

/// The prefix of the kind and the name of a lock of the kernel, in the names of metrics.
pub const WAIT: &str = "kernel_wait:";
const READERS: &str = "kernel_readers:";
/// Locks that the table has.
const ROWS: usize = 12;

/// What is measured, and in which words.
pub struct Wording {
    pub workload: &'static str,
    /// Processes or threads.
    pub those: &'static str,
    pub operations: &'static str,
    /// The number of seconds in the displayed unit, and the unit's name.
    pub per: f64,
    pub unit: &'static str,
    /// The parameters that all records have.
    pub parameters: Vec<(&'static str, Parameter)>,
}

impl Wording {
    /// Operations a second as a person reads them.
    pub fn rate(&self, value: f64) -> String {
        quantity(value * self.per, "op/s").replace("op/s", self.unit)
    }
}

/// A record for each point. The first record of a load, with the fewest processes or threads, is
/// the base line of that load.
pub fn results(subject: &Wording, measured: &[Measured], refused: Option<&str>) -> Result<Results> {
    let mut records = Vec::new();
    for of_load in measured.chunk_by(|a, b| a.order.what == b.order.what) {
        let Some((base, others)) = of_load.split_first() else { continue };
        let values: Vec<&[f64]> = others.iter().map(|point| &point.values[..]).collect();
        let comparisons = Protocol::new(Better::Higher).compare_all(&base.values, &values);
        let comparisons = comparisons
            .map_err(|error| Failure::failed(format!("{}: {error}", subject.workload)))?;
        let base_cpus = usable(base.order.parallel);
        for (index, point) in of_load.iter().enumerate() {
            let mut record = record(subject, point, refused);
            if let Some(comparison) = index.checked_sub(1).map(|other| &comparisons[other]) {
                let (low, high) = comparison.interval.unzip();
                let linear = usable(point.order.parallel) / base_cpus;
                let mut metric = |name: &str, by: f64| {
                    let of = |value: f64| value / by;
                    let metric = Metric {
                        value: of(comparison.ratio),
                        unit: "ratio".into(),
                        low: low.map(of),
                        high: high.map(of),
                    };
                    record.metrics.insert(name.into(), metric);
                };
                metric("ratio", 1.0);
                metric("of_linear", linear);
            }
            records.push(record);
        }
    }
    Ok(Results::of_this_host(records))
}

/// The number of CPUs that this many processes or threads can use.
pub fn usable(parallel: u32) -> f64 {
    f64::from(parallel).min(cpus::allowed().len() as f64)
}

fn record(subject: &Wording, point: &Measured, refused: Option<&str>) -> Measurement {
    let median = Median::of(&point.values).expect("there is a round");
    let mechanism = Mechanism::Sync("kernel".into());
    let mut record = Measurement::new(subject.workload, mechanism, "op/s", median.value);
    (record.low, record.high) = median.interval.unzip();
    record.threads = point.order.parallel;
    if let What::Faults { update } = point.order.what {
        record.update = Some(update);
    }
    record.repetitions = point.values.len() as u32;
    record.seed = Some(point.order.seed);
    let named = |(name, value): &(&str, Parameter)| ((*name).to_owned(), value.clone());
    record.parameters.extend(subject.parameters.iter().map(named));
    let duration = point.order.measured.as_nanos() as f64;
    record.parameters.insert("duration_ns".into(), duration.into());
    match refused {
        Some(why) => {
            record.parameters.insert("kernel_refused".into(), why.into());
        }
        None => add_kernel(&mut record, &point.profiled),
    }
    record
}

/// Adds the cost of the kernel's locks in the observed runs.
fn add_kernel(record: &mut Measurement, profiled: &[Profiled]) {
    let Some(last) = profiled.last() else { return };
    let metric = |values: Vec<f64>, unit: &str| {
        let median = Median::of(&values).expect("there is a run");
        let (low, high) = median.interval.unzip();
        Metric { value: median.value, unit: unit.into(), low, high }
    };
    let seen = |of: fn(&Seen) -> u64| profiled.iter().map(|run| of(&run.seen) as f64).sum::<f64>();
    let run = &last.seen.run;
    let source = match run.source {
        Source::Bpf => "bpf",
        Source::Perf => "perf",
        Source::LockStat => "lock-stat",
    };
    let parameters: [(&str, Parameter); 5] = [
        ("kernel_source", source.into()),
        ("kernel_profiles", (profiled.len() as f64).into()),
        ("kernel_waits", seen(|seen| seen.run.events).into()),
        ("kernel_dropped", seen(|seen| seen.run.dropped).into()),
        ("kernel_limits", run.limits.join("; ").as_str().into()),
    ];
    record.parameters.extend(parameters.map(|(name, value)| (name.to_owned(), value)));
    let watched = metric(profiled.iter().map(|run| run.throughput).collect(), "op/s");
    record.metrics.insert("watched".into(), watched);
    let share = |run: &Profiled, ns: u64| 100.0 * ns as f64 / run.time_ns.max(1.0);
    let all =
        |run: &Profiled| share(run, run.seen.locks.iter().map(|lock| lock.wait.total_ns).sum());
    record.metrics.insert("kernel_wait".into(), metric(profiled.iter().map(all).collect(), "%"));
    for (name, locks) in by_name(profiled) {
        let shares = profiled
            .iter()
            .zip(&locks)
            .map(|(run, lock)| share(run, lock.map_or(0, |lock| lock.wait.total_ns)));
        record.metrics.insert(format!("{WAIT}{name}"), metric(shares.collect(), "%"));
        let sum =
            |of: fn(&KernelLock) -> u64| locks.iter().flatten().map(|lock| of(lock)).sum::<u64>();
        let (readers, waits) = (sum(|lock| lock.contended_shared), sum(|lock| lock.contended));
        let value = 100.0 * readers as f64 / waits.max(1) as f64;
        let readers = Metric { value, unit: "%".into(), low: None, high: None };
        record.metrics.insert(format!("{READERS}{name}"), readers);
    }
}

/// Each observed lock, by kind and name, with the results of each run.
fn by_name(profiled: &[Profiled]) -> BTreeMap<String, Vec<Option<&KernelLock>>> {
    let mut locks: BTreeMap<String, Vec<Option<&KernelLock>>> = BTreeMap::new();
    for (number, run) in profiled.iter().enumerate() {
        for lock in &run.seen.locks {
            let whose = if lock.is_named { "" } else { "in " };
            let name = format!("{}:{whose}{}", lock.kind, lock.name);
            locks.entry(name).or_insert_with(|| vec![None; profiled.len()])[number] = Some(lock);
        }
    }
    locks
}

/// The records of each load, with the load's name.
pub fn loads(results: &Results) -> impl Iterator<Item = (String, &[Measurement])> {
    results.measurements.chunk_by(|a, b| a.update == b.update).map(|records| {
        let update = records[0].update;
        (update.map_or(String::new(), |share| format!("{share} % of the operations map")), records)
    })
}

/// The tables: for each load the throughput, and the kernel's locks.
pub fn render(subject: &Wording, results: &Results) -> String {
    let mut text = String::new();
    for (name, records) in loads(results) {
        text += &format!("{}\n{}\n\n", heading(&name, &records[0]), throughput(subject, records));
        text += &kernel(subject, records);
    }
    text + &means(&results.measurements)
}

fn heading(name: &str, record: &Measurement) -> String {
    let time = manycore_measure::duration(record.number("duration_ns").unwrap_or_default());
    let mix = record.name("mix").map(|mix| format!("jobs {mix}"));
    let system = match record.name("filesystem") {
        Some("tmpfs") => Some("files on a tmpfs".to_owned()),
        Some(_) => Some("files NOT on a tmpfs".to_owned()),
        None => None,
    };
    let runs = format!("{} of {}", times(record.repetitions.into(), "run"), time.trim_end());
    let name = (!name.is_empty()).then(|| name.to_owned());
    let parts: Vec<String> = [name, mix, system, Some(runs)].into_iter().flatten().collect();
    parts.join(", ")
}

fn throughput(subject: &Wording, records: &[Measurement]) -> Table {
    let first = format!("of {}", records[0].threads);
    let numbers =
        [subject.those, subject.operations, "95 %", &first, "95 %", "of linear", "watched"];
    let mut table = Table::new(numbers.map(Column::number));
    for record in records {
        let metric = |name: &str| record.metrics.get(name);
        let range = match (record.low, record.high) {
            (Some(low), Some(high)) => {
                format!("[{}, {}]", subject.rate(low), subject.rate(high))
            }
            _ => String::new(),
        };
        let cells = [
            record.threads.to_string(),
            subject.rate(record.value),
            range,
            metric("ratio").map_or("base line".to_owned(), |m| ratio(m.value)),
            metric("ratio").map_or(String::new(), |m| interval(m.low, m.high)),
            metric("of_linear").map_or(String::new(), |m| ratio(m.value)),
            metric("watched").map_or(String::new(), |m| subject.rate(m.value)),
        ];
        table.row(cells.map(Cell::from));
    }
    table
}

/// The locks with the longest waits in some records, by kind and name.
pub fn most_waited(records: &[Measurement], most: usize) -> Vec<&str> {
    let mut highest: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, metric) in records.iter().flat_map(|record| &record.metrics) {
        if let Some(lock) = name.strip_prefix(WAIT) {
            let known = highest.entry(lock).or_default();
            *known = known.max(metric.value);
        }
    }
    let mut sorted: Vec<_> = highest.into_iter().collect();
    sorted.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    sorted.into_iter().take(most).map(|(lock, _)| lock).collect()
}

/// The part of the time spent in waits for a lock, in percent.
pub fn wait_of(record: &Measurement, lock: &str) -> f64 {
    record.metrics.get(&format!("{WAIT}{lock}")).map_or(0.0, |metric| metric.value)
}

/// The kernel's locks of a load; empty if they were not observed.
fn kernel(subject: &Wording, records: &[Measurement]) -> String {
    let Some(profiles) = records[0].number("kernel_profiles") else { return String::new() };
    let (those, last) = (subject.those, records[records.len() - 1].threads);
    format!(
        "Locks of the kernel: the share of the {those}' time that they were waited for, by the number of {those}.\n\
         Medians of {} of each that were watched, at the cost that the column above shows; of {last}, the\n\
         share of all waiting, and of the waits those of readers.\n{}\n\n",
        times(profiles, "run"),
        lock_table(records)
    )
}

/// How the kernel was watched, or why not.
fn means(records: &[Measurement]) -> String {
    let Some(first) = records.first() else { return String::new() };
    if let Some(why) = first.name("kernel_refused") {
        return format!("The kernel's locks are not shown: {why}.\n");
    }
    let Some(source) = first.name("kernel_source") else {
        return "The kernel's locks are not shown: --profiles is 0.\n".to_owned();
    };
    let sum = |name: &str| records.iter().filter_map(|record| record.number(name)).sum::<f64>();
    let seen = format!(
        "Seen by {}: {} waits, {} dropped.\n",
        match source {
            "bpf" => "BPF",
            "perf" => "perf events",
            _ => "/proc/lock_stat, of the whole system",
        },
        sum("kernel_waits"),
        sum("kernel_dropped")
    );
    let limits = first.name("kernel_limits").unwrap_or_default().split("; ");
    let notes = limits.filter(|limit| !limit.is_empty()).map(|limit| format!("Note: {limit}.\n"));
    seen + &notes.collect::<String>()
}

/// A number with its noun, in the plural unless the number is one.
fn times(count: f64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1.0 { "" } else { "s" })
}

fn lock_table(records: &[Measurement]) -> Table {
    let numbers = records.iter().map(|record| Column::number(&record.threads.to_string()));
    let columns =
        [Column::words("lock of the kernel"), Column::words("kind")].into_iter().chain(numbers);
    let mut table = Table::new(columns.chain(["of waiting", "readers"].map(Column::number)));
    let last = records.last().expect("a load has records");
    let whole =
        |record: &Measurement| record.metrics.get("kernel_wait").map_or(0.0, |metric| metric.value);
    for lock in most_waited(records, ROWS) {
        let (kind, name) = lock.split_once(':').unwrap_or(("", lock));
        let shares = records.iter().map(|record| percent(wait_of(record, lock) / 100.0));
        let readers = last.metrics.get(&format!("{READERS}{lock}"));
        let readers = readers.map_or(String::new(), |metric| percent(metric.value / 100.0));
        let of_waiting = percent(wait_of(last, lock) / whole(last).max(f64::MIN_POSITIVE));
        let about = [name.to_owned(), kind.to_owned()].into_iter();
        let cells = about.chain(shares).chain([of_waiting, readers]);
        table.row(cells.map(Cell::from));
    }
    let whole =
        |record: &Measurement| record.metrics.get("kernel_wait").map_or(0.0, |metric| metric.value);
    let shares = records.iter().map(|record| percent(whole(record) / 100.0));
    let cells = ["all".to_owned(), String::new()]
        .into_iter()
        .chain(shares)
        .chain(["", ""].map(str::to_owned));
    table.row(cells.map(Cell::from));
    table
}

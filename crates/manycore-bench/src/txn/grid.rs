//! The operations of threads on databases: a grid of points, the same for every machine.

use super::task::{Mix, Size, Task};
use crate::failure::Failure;
use crate::popularity::Popularity;
use crate::slice::MOST_THREADS;

/// The most rows of a database.
const ROWS_MAX: u64 = 1 << 28;

/// The largest number of records with unequal popularity. A table has a number for each.
const POPULAR_MAX: u64 = 10_000_000;

/// The fewest records: a transaction uses 16 different ones.
const RECORDS_MIN: u64 = 100;

/// The most warehouses: what keys have room for.
const WAREHOUSES_MAX: u64 = 1 << 16;

/// The most customers of a district, and the most items of a warehouse.
const CUSTOMERS_MAX: u64 = 60_000;
const ITEMS_MAX: u64 = 1 << 24;

/// Mechanisms, and a grid of points.
#[derive(Clone, Debug)]
pub struct TaskGrid {
    /// Names of mechanisms; the first is the base line.
    pub syncs: Vec<String>,
    /// Which transactions.
    pub mixes: Vec<Mix>,
    /// Thread counts.
    pub threads: Vec<u32>,
    /// What is in the database at the start.
    pub size: Size,
    /// The share of requests of `ycsb16` that write, in percent.
    pub update: f64,
    /// Which records are asked for.
    pub popularity: Popularity,
    /// What everything is drawn by.
    pub seed: u64,
}

impl Default for TaskGrid {
    /// Both workloads by `mvrlu`, with 1, 2 and 8 threads.
    fn default() -> Self {
        Self {
            syncs: vec!["mvrlu".into()],
            mixes: vec![Mix::Ycsb16, Mix::Tpcc],
            threads: vec![1, 2, 8],
            size: Size::default(),
            update: 50.0,
            popularity: Popularity::Zipf(0.6),
            seed: 1,
        }
    }
}

impl TaskGrid {
    /// Whether it makes sense, for these mechanisms.
    pub(crate) fn check(&self, known: &[String]) -> Result<(), Failure> {
        let unknown = self.syncs.iter().find(|sync| !known.contains(sync));
        let strange_threads = self.threads.iter().find(|n| !(1..=MOST_THREADS).contains(*n));
        let faults = [
            self.syncs.is_empty().then(|| "no mechanisms: give some, such as mvrlu".into()),
            unknown.map(|unknown| {
                format!("no database by `{unknown}`: choose from {}", known.join(", "))
            }),
            (self.threads.is_empty() || self.mixes.is_empty())
                .then(|| "nothing to measure: give a number of threads and a workload".into()),
            strange_threads
                .map(|n| format!("{n} threads: a thread count is between 1 and {MOST_THREADS}")),
            (!(0.0..=100.0).contains(&self.update))
                .then(|| format!("an update share of {}: it is between 0 and 100 %", self.update)),
            self.size_fault(),
            self.popularity.fault(),
        ];
        match faults.into_iter().flatten().next() {
            Some(fault) => Err(Failure::Usage(fault)),
            None => Ok(()),
        }
    }

    fn size_fault(&self) -> Option<String> {
        let Size { records, warehouses, items, customers } = self.size;
        let of_ycsb = || {
            if !(RECORDS_MIN..=ROWS_MAX).contains(&records) {
                return Some(format!(
                    "{records} records: there are between {RECORDS_MIN} and 2^28"
                ));
            }
            (self.popularity != Popularity::Uniform && records > POPULAR_MAX).then(|| {
                format!("zipf over {records} records: use --zipf 0, or {POPULAR_MAX} at most")
            })
        };
        let of_tpcc = || {
            let bounds = [
                ("warehouses", warehouses, WAREHOUSES_MAX),
                ("items", items, ITEMS_MAX),
                ("customers", customers, CUSTOMERS_MAX),
            ];
            let strange = bounds.into_iter().find(|(_, count, most)| !(1..=*most).contains(count));
            let rows = Mix::Tpcc.rows(self.size);
            strange
                .map(|(what, count, most)| {
                    format!("{count} {what}: there are between 1 and {most}")
                })
                .or_else(|| (rows > ROWS_MAX).then(|| format!("{rows} rows: at most 2^28")))
        };
        let of_mix = |mix: &Mix| match mix {
            Mix::Ycsb16 => of_ycsb(),
            Mix::Tpcc => of_tpcc(),
        };
        self.mixes.iter().find_map(of_mix)
    }

    /// Each mix with each number of threads. The mechanism is the base line.
    pub(crate) fn points(&self) -> Vec<Task> {
        let point = |mix: &Mix, threads: &u32| Task {
            sync: self.syncs.first().cloned().unwrap_or_default(),
            mix: *mix,
            threads: *threads,
            size: self.size,
            update: self.update,
            popularity: self.popularity,
            seed: self.seed,
        };
        let of_mix = |mix| self.threads.iter().map(move |threads| point(mix, threads));
        self.mixes.iter().flat_map(of_mix).collect()
    }
}

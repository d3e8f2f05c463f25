//! Workloads of sets and reverse maps, on this host and on a simulated machine.

use std::time::Duration;

use manycore_measure::Measurement;
use manycore_measure::paired::Rounds;
use manycore_sim::Model;

use crate::failure::Failure;
use crate::rmap::{self, Load};
use crate::run_records::RunRecords;
use crate::set::simulated as simulated_set;
use crate::set::{self, Keys, Popularity, TaskGrid};
use crate::simulated::{Beside, SimulatorPool};
use crate::worker::Command;

/// The study's settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// The model of this host.
    pub model: Model,
    /// Thread counts; the claims are about 1 and 2.
    pub threads: Vec<u32>,
    /// The number of native rounds.
    pub rounds: u32,
    /// The length of a native slice.
    pub slice: Duration,
    /// The simulated time during which operations are counted.
    pub simulated: Duration,
    /// The seed of every random choice.
    pub seed: u64,
    /// The command that starts a process for the measurement of a set.
    pub worker: Command,
    /// The pool that runs simulations.
    pub pool: SimulatorPool,
}

impl Options {
    /// 7 rounds of 1 and 2 threads.
    pub fn new(model: Model, worker: Command, pool: SimulatorPool) -> Self {
        Self {
            model,
            threads: vec![1, 2],
            rounds: 7,
            slice: Duration::from_millis(20),
            simulated: Duration::from_millis(5),
            seed: 1,
            worker,
            pool,
        }
    }
}

/// A workload with its name.
pub(crate) struct Case {
    pub name: String,
    pub kind: Kind,
}

/// What a case uses: a set, or reverse maps.
pub(crate) enum Kind {
    Set(TaskGrid),
    ReverseMap(rmap::Options),
}

/// Structure, keys, mechanisms, shares of updates in percent, and the popularity of keys.
type Sets = (&'static str, u64, &'static [&'static str], &'static [f64], Popularity);

const LISTS: &[&str] =
    &["lock:adaptive", "mvrlu", "rlu", "rcu", "lazy", "harris", "flat-combining"];
const TABLES: &[&str] =
    &["lock:adaptive", "mvrlu", "mvrlu-growing", "rlu", "rcu", "flat-combining"];
const TREES: &[&str] = &["lock:adaptive", "mvrlu", "rlu", "rcu", "flat-combining"];
const SHARES: &[f64] = &[2.0, 20.0, 50.0];

const SETS: [Sets; 5] = [
    ("list", 500, LISTS, SHARES, Popularity::Uniform),
    ("list", 50, LISTS, &[20.0], Popularity::Uniform),
    ("hash", 10_000, TABLES, SHARES, Popularity::Uniform),
    ("hash", 10_000, TABLES, &[20.0], Popularity::Zipf(1.0)),
    ("bst", 10_000, TREES, SHARES, Popularity::Uniform),
];

const MAPS: &[&str] =
    &["ldu", "ldu-per-core", "ldu-forest", "oplog", "flat-combining", "harris", "lock:mcs"];

/// Whether the threads insert the same intervals again and again, and the share of updates in
/// percent.
const REVERSE_MAPS: [(bool, f64); 4] =
    [(false, 100.0), (true, 100.0), (false, 90.0), (false, 50.0)];

impl Options {
    /// The cases, each with one share of updates.
    pub(super) fn cases(&self) -> Vec<Case> {
        let of_sets = |(structure, initial, syncs, shares, popularity): Sets| {
            shares.iter().map(move |share| Case {
                name: format!(
                    "{structure}, {initial} keys{}, {share} % updates",
                    if popularity == Popularity::Uniform { "" } else { ", zipf" },
                ),
                kind: Kind::Set(TaskGrid {
                    structure: structure.to_owned(),
                    syncs: syncs.iter().map(|sync| (*sync).to_owned()).collect(),
                    threads: self.threads.clone(),
                    updates: vec![*share],
                    keys: Keys { popularity, seed: self.seed, ..Keys::of(initial) },
                }),
            })
        };
        let of_map = |(reuse, share): (bool, f64)| Case {
            name: format!(
                "reverse map, {} intervals, {share} % updates",
                if reuse { "reused" } else { "fresh" }
            ),
            kind: Kind::ReverseMap(rmap::Options {
                syncs: MAPS.iter().map(|sync| (*sync).to_owned()).collect(),
                threads: self.threads.clone(),
                updates: vec![share],
                load: Load { reuse, seed: self.seed, ..Load::default() },
                ..rmap::Options::default()
            }),
        };
        SETS.into_iter().flat_map(of_sets).chain(REVERSE_MAPS.map(of_map)).collect()
    }

    /// Results on this host: the median over the rounds.
    pub(crate) fn native(&self, case: &Case) -> Result<Vec<Measurement>, Failure> {
        match &case.kind {
            Kind::Set(workload) => whole(set::run(&set::Options {
                workload: workload.clone(),
                slice: self.slice,
                rounds: Rounds::Count(self.rounds),
                progress: self.pool.progress,
                ..set::Options::new(self.worker.clone())
            })?),
            Kind::ReverseMap(workload) => {
                let workload = rmap::Options {
                    duration: self.slice,
                    rounds: self.rounds,
                    progress: self.pool.progress,
                    ..workload.clone()
                };
                whole(rmap::run(&workload, &self.worker)?)
            }
        }
    }

    /// Results on the simulated host, with `beside` charged for each operation apart from its
    /// accesses.
    pub(crate) fn simulated(
        &self,
        case: &Case,
        beside: Beside,
    ) -> Result<Vec<Measurement>, Failure> {
        let mut records = whole(match &case.kind {
            Kind::Set(workload) => simulated_set::run(&simulated_set::Options {
                workload: workload.clone(),
                duration: self.simulated,
                beside,
                ..simulated_set::Options::new(self.model.clone(), self.pool.clone())
            })?,
            Kind::ReverseMap(workload) => rmap::simulate(
                &rmap::Options { duration: self.simulated, beside, ..workload.clone() },
                &self.model,
                &self.pool,
            )?,
        })?;
        for record in &mut records {
            let fitted =
                [("beside_read_ns", beside.read_ns), ("beside_update_ns", beside.update_ns)];
            record.parameters.extend(fitted.map(|(name, ns)| (name.to_owned(), ns.into())));
        }
        Ok(records)
    }
}

/// The records, unless something failed.
fn whole(found: RunRecords) -> Result<Vec<Measurement>, Failure> {
    match found.failures.into_iter().next() {
        None => Ok(found.measurements),
        Some(failure) => Err(Failure::Failed(failure)),
    }
}

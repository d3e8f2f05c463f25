//! `manycore sim index`: threads use an index on a simulated machine, by several mechanisms.
//!
//! The operations are those of [`bench index`](crate::index). Apart from its accesses to the index,
//! an operation costs 5 ns, and each entry of a scan 1 ns, unless options say otherwise:
//! assumptions, the same for all mechanisms.

use std::collections::BTreeMap;
use std::sync::Arc;

use manycore_measure::{Measurement, Metric};
use manycore_sim::thread;

use super::any_index::{Abilities, AnyIndex, find};
use super::grid::TaskGrid;
use super::operations::{Actor, Inserted, Operations, Tally};
use super::own::simulated::CONTENDERS;
use super::result::describe;
use super::task::{Records, Task, key_of};
use super::verify::{Verdict, verify};
use crate::failure::Failure;
use crate::run_records::RunRecords;
use crate::simulated::{Beside, Finding, Run};
use crate::structure::{
    self, Grid, GridPoint, Load, SimulatedActor, SimulatedOptions, SimulatedUse,
};

/// The time for an entry of a scan apart from its accesses, in nanoseconds. A guess, the same for
/// all.
const ENTRY_NS: f64 = 1.0;

/// What to simulate.
pub type Options = SimulatedOptions<TaskGrid>;

/// Simulates.
pub fn run(options: &Options) -> Result<RunRecords, Failure> {
    structure::run(options)
}

impl Grid for TaskGrid {
    type Task = Task;

    const ELEMENTS: &'static str = "records";

    fn check_simulated(&self) -> Result<(), Failure> {
        self.check(CONTENDERS)
    }

    fn tasks(&self) -> Vec<Task> {
        self.points()
    }

    fn syncs(&self) -> &[String] {
        &self.syncs
    }

    fn threads(&self) -> &[u32] {
        &self.threads
    }

    fn initial(&self) -> u64 {
        self.records.initial
    }

    fn seed(&self) -> u64 {
        self.records.seed
    }

    fn describe(record: &mut Measurement, task: &Task, sync: &str) {
        describe(record, task, find(CONTENDERS, &task.structure, sync));
        if let Some(each) = record.metrics.remove(SCANNED) {
            record.metrics.insert("entries".to_owned(), times(&each, record));
        }
    }
}

/// The number of entries that scans of the simulated program read, for each operation.
const SCANNED: &str = "scanned";

/// Entries a second, computed from the entries that one operation reads. The value is exact for the
/// model itself; the ends of a sweep may belong to different variants.
fn times(each: &Metric, record: &Measurement) -> Metric {
    let end = |each: Option<f64>, operations: Option<f64>| Some(each? * operations?);
    Metric {
        value: each.value * record.value,
        unit: "entry/s".to_owned(),
        low: end(each.low, record.low),
        high: end(each.high, record.high),
    }
}

impl GridPoint for Task {
    const WORKLOAD: &'static str = "index";
    const PROGRAM: &'static str = "Index";

    fn threads(&self) -> u32 {
        self.threads
    }

    fn in_round(&self, sync: &str, round: u32) -> Self {
        let seed = self.records.seed.wrapping_add(u64::from(round));
        let records = Records { seed, ..self.records.clone() };
        Self { sync: sync.to_owned(), records, ..self.clone() }
    }

    fn simulate(load: &Load<Self>, run: &Run) -> Result<Finding, String> {
        let task = &load.task;
        let initial = task.records.initial;
        let (ranks, numbers) = (task.records.ranks(), task.records.first());
        let inserted = Arc::new(Inserted::new(initial, initial, task.threads));
        let how = load.of_keys(initial);
        let operations = |thread| Operations::new(task, thread, &ranks, &inserted);
        structure::simulate(run, how, operations, || {
            let unknown = || format!("there is no {} by {} to simulate", task.structure, task.sync);
            let contender = find(CONTENDERS, &task.structure, &task.sync).ok_or_else(unknown)?;
            let index = (contender.make)(task);
            let (numbers, inserted) = (&numbers[..], &inserted);
            Ok(Use { index, abilities: contender.abilities, load, numbers, inserted })
        })
    }
}

/// An index that simulated threads use.
struct Use<'a> {
    index: Box<dyn AnyIndex>,
    abilities: Abilities,
    load: &'a Load<Task>,
    numbers: &'a [u64],
    inserted: &'a Arc<Inserted>,
}

impl SimulatedUse for Use<'_> {
    type Operations = Operations;
    type Tally = Tally;
    type Actor<'a>
        = SimulatedThread<'a>
    where
        Self: 'a;

    fn actor(&self, thread: u32, operations: Operations) -> SimulatedThread<'_> {
        let actor = Actor::new(self.index.handle(), thread, self.inserted);
        SimulatedThread { actor, operations, numbers: self.numbers, beside: self.load.beside }
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.index.statistics(visit);
    }

    fn verify(&self, tallies: &[Tally], operations: u64) -> Result<BTreeMap<String, f64>, String> {
        let Self { index, abilities, load: Load { task, .. }, inserted, .. } = self;
        let tally = Tally::sum(tallies.iter().copied());
        let Verdict { lost } =
            verify(&**index, *abilities, task, inserted, &tally, thread::progress)?;
        let each = |count: u64| count as f64 / operations.max(1) as f64;
        let scanned = task.mix.scans().then(|| (SCANNED.to_owned(), each(tally.scanned)));
        let lost = lost.map(|lost| ("count_lost_updates".to_owned(), each(lost)));
        Ok(scanned.into_iter().chain(lost).collect())
    }
}

/// A simulated thread.
struct SimulatedThread<'a> {
    actor: Actor<'a>,
    operations: Operations,
    numbers: &'a [u64],
    beside: Beside,
}

impl SimulatedActor<Tally> for SimulatedThread<'_> {
    fn fill(&mut self) {
        for number in self.numbers {
            self.actor.handle.put(key_of(*number), 0);
            thread::progress();
        }
    }

    fn act(&mut self) -> f64 {
        let operation = self.operations.draw();
        let before = self.actor.tally.scanned;
        self.actor.act(operation);
        let entries = self.actor.tally.scanned - before;
        self.beside.ns(operation.updates()) + entries as f64 * ENTRY_NS
    }

    fn tally(&self) -> Tally {
        self.actor.tally
    }
}

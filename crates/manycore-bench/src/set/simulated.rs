//! `manycore sim set`: threads use a set on a simulated machine, with several mechanisms.
//!
//! The operations are those of [`bench set`](crate::set). The first thread fills the set and does
//! some operations alone, so that mechanisms have adapted when the other threads start. That
//! simulated time does not count. Apart from the accesses to the set, an operation costs 5 ns
//! unless an option says otherwise: an assumption, the same for all mechanisms.

use std::collections::BTreeMap;

use manycore_measure::Measurement;
use manycore_sim::thread;
use manycore_traits::SetHandle;

use crate::failure::Failure;
use crate::run_records::RunRecords;
use crate::set::ascylib;
use crate::set::contenders::{self, AnySet};
use crate::set::durable;
use crate::set::slice::verify;
use crate::set::{Keys, Operations, Task, TaskGrid, apply, describe};
use crate::simulated::{Beside, Finding, Run};
use crate::structure::{
    self, Grid, GridPoint, Load, SimulatedActor, SimulatedOptions, SimulatedUse,
};

/// What to simulate.
pub type Options = SimulatedOptions<TaskGrid>;

/// Runs the simulation.
pub fn run(options: &Options) -> Result<RunRecords, Failure> {
    structure::run(options)
}

impl Grid for TaskGrid {
    type Task = Task;

    const ELEMENTS: &'static str = "keys";

    fn check_simulated(&self) -> Result<(), Failure> {
        let names = contenders::simulated::names(&self.structure).into_iter();
        let names = names.chain(durable::names(&self.structure));
        self.check(&names.chain(ascylib::names(&self.structure)).collect::<Vec<_>>())
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
        self.keys.initial
    }

    fn seed(&self) -> u64 {
        self.keys.seed
    }

    fn describe(record: &mut Measurement, task: &Task, _: &str) {
        describe(record, task);
    }
}

/// The largest range of which each key is looked up at the end.
const LOOKED_UP: u64 = 20_000;

impl GridPoint for Task {
    const WORKLOAD: &'static str = "set";
    const PROGRAM: &'static str = "Set";

    fn threads(&self) -> u32 {
        self.threads
    }

    fn in_round(&self, sync: &str, round: u32) -> Self {
        let seed = self.keys.seed.wrapping_add(u64::from(round));
        let keys = Keys { seed, ..self.keys.clone() };
        Self { sync: sync.to_owned(), keys, ..self.clone() }
    }

    fn simulate(load: &Load<Self>, run: &Run) -> Result<Finding, String> {
        let task = &load.task;
        if let Some(fault) = durable::fault(&task.sync, &run.machine) {
            return Err(fault);
        }
        let (ranks, keys) = (task.keys.ranks(), task.keys.first());
        let how = load.of_keys(keys.len() as u64);
        let operations = |thread| task.operations(thread, &ranks);
        structure::simulate(run, how, operations, || {
            let unknown = || format!("there is no {} by {} to simulate", task.structure, task.sync);
            let set = durable::make(task).or_else(|| ascylib::make(task));
            let set = set.or_else(|| contenders::simulated::make(task));
            let set = set.ok_or_else(unknown)?;
            Ok(Use { set, load, keys: &keys })
        })
    }
}

/// A set that simulated threads use.
struct Use<'a> {
    set: Box<dyn AnySet>,
    load: &'a Load<Task>,
    keys: &'a [u64],
}

impl SimulatedUse for Use<'_> {
    type Operations = Operations;
    /// The number of keys that the thread has added, less those that it has removed.
    type Tally = i64;
    type Actor<'a>
        = Actor<'a>
    where
        Self: 'a;

    fn actor(&self, _: u32, operations: Operations) -> Actor<'_> {
        let Self { set, load, keys } = self;
        Actor { handle: set.handle(), operations, keys, beside: load.beside, added: 0 }
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.set.statistics(visit);
    }

    fn verify(&self, tallies: &[i64], _: u64) -> Result<BTreeMap<String, f64>, String> {
        let added = tallies.iter().sum();
        verify(&*self.set, added, &self.load.task, LOOKED_UP, thread::progress)?;
        Ok(BTreeMap::new())
    }
}

/// A simulated thread.
struct Actor<'a> {
    handle: Box<dyn SetHandle<u64> + 'a>,
    operations: Operations,
    keys: &'a [u64],
    beside: Beside,
    added: i64,
}

impl SimulatedActor<i64> for Actor<'_> {
    fn fill(&mut self) {
        for key in self.keys {
            self.handle.insert(*key);
            thread::progress();
        }
    }

    fn act(&mut self) -> f64 {
        let operation = self.operations.draw();
        self.added += apply(&mut *self.handle, operation);
        self.beside.ns(operation.updates())
    }

    fn tally(&self) -> i64 {
        self.added
    }
}

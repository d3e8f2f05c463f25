//! `manycore sim txn`: threads run transactions on a simulated machine, by several mechanisms.
//!
//! The operations are those of [`bench txn`](crate::txn). Apart from its accesses to rows, a
//! transaction costs 5 ns unless an option says otherwise: an assumption, the same for all
//! mechanisms.

use std::collections::BTreeMap;

use manycore_measure::Measurement;
use manycore_sim::thread;

use super::database::{Database, find, names};
use super::grid::TaskGrid;
use super::operations::{Actor, Draws, Tally, verify};
use super::own::simulated::CONTENDERS;
use super::result::{AUDITS, describe};
use super::task::{Mix, Task};
use crate::failure::Failure;
use crate::run_records::RunRecords;
use crate::simulated::{Finding, Run};
use crate::structure::{
    self, Grid, GridPoint, Load, SimulatedActor, SimulatedOptions, SimulatedUse,
};

/// What to simulate.
pub type Options = SimulatedOptions<TaskGrid>;

/// Simulates.
pub fn run(options: &Options) -> Result<RunRecords, Failure> {
    structure::run(options)
}

impl Grid for TaskGrid {
    type Task = Task;

    const ELEMENTS: &'static str = "rows";

    fn check_simulated(&self) -> Result<(), Failure> {
        self.check(&names(CONTENDERS))
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
        self.mixes.iter().map(|mix| mix.rows(self.size)).max().unwrap_or_default()
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn describe(record: &mut Measurement, task: &Task, _: &str) {
        describe(record, task);
    }
}

impl GridPoint for Task {
    const WORKLOAD: &'static str = "txn";
    const PROGRAM: &'static str = "Transactions";

    fn threads(&self) -> u32 {
        self.threads
    }

    fn in_round(&self, sync: &str, round: u32) -> Self {
        let seed = self.seed.wrapping_add(u64::from(round));
        Self { sync: sync.to_owned(), seed, ..self.clone() }
    }

    fn simulate(load: &Load<Self>, run: &Run) -> Result<Finding, String> {
        let task = &load.task;
        let ranks = task.popularity.ranks(task.size.records);
        let how = load.of_keys(task.rows());
        let draws = |thread| Draws::new(task, thread, &ranks);
        structure::simulate(run, how, draws, || {
            let unknown = || format!("there is no database by {} to simulate", task.sync);
            let contender = find(CONTENDERS, &task.sync).ok_or_else(unknown)?;
            Ok(Use { database: (contender.make)(task), load })
        })
    }
}

/// A database that simulated threads use.
struct Use<'a> {
    database: Box<dyn Database>,
    load: &'a Load<Task>,
}

impl SimulatedUse for Use<'_> {
    type Operations = Draws;
    type Tally = Tally;
    type Actor<'a>
        = SimulatedThread<'a>
    where
        Self: 'a;

    fn actor(&self, _: u32, draws: Draws) -> SimulatedThread<'_> {
        SimulatedThread { actor: Actor::new(self.database.session()), draws, load: self.load }
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.database.statistics(visit);
    }

    fn verify(&self, tallies: &[Tally], operations: u64) -> Result<BTreeMap<String, f64>, String> {
        let task = &self.load.task;
        let tally = Tally::sum(tallies.iter().cloned());
        let mut session = self.database.session();
        verify(&mut *session, task, &tally, tally.added, &mut thread::progress)?;
        let each = tally.audits as f64 / operations.max(1) as f64;
        let audits = (task.mix == Mix::Tpcc).then(|| (AUDITS.to_owned(), each));
        Ok(audits.into_iter().collect())
    }
}

/// A simulated thread.
struct SimulatedThread<'a> {
    actor: Actor<'a>,
    draws: Draws,
    load: &'a Load<Task>,
}

impl SimulatedActor<Tally> for SimulatedThread<'_> {
    fn fill(&mut self) {
        self.actor.fill(&self.load.task, &mut thread::progress);
    }

    fn act(&mut self) -> f64 {
        let transaction = self.draws.draw();
        self.actor.act(&transaction);
        self.load.beside.ns(transaction.updates())
    }

    fn tally(&self) -> Tally {
        self.actor.tally.clone()
    }
}

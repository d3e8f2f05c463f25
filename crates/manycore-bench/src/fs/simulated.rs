//! `manycore sim fs`: threads use KhronOS' file system on a simulated machine, by several
//! mechanisms.
//!
//! The operations are those of [`bench fs`](crate::fs). Apart from its accesses, an operation costs
//! 5 ns unless an option says otherwise: an assumption, the same for all mechanisms.

use std::collections::BTreeMap;

use manycore_measure::Measurement;
use manycore_sim::thread;

use super::grid::TaskGrid;
use super::own::{self, FileSystem, Worker};
use super::result::{RETRIES, describe};
use super::task::Task;
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

    const ELEMENTS: &'static str = "names";

    fn check_simulated(&self) -> Result<(), Failure> {
        self.check()
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
        let threads = self.threads.iter().max().copied().unwrap_or_default();
        u64::from(threads) * NAMES_OF_A_THREAD
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn describe(record: &mut Measurement, task: &Task, _: &str) {
        describe(record, task);
    }
}

/// The most that a workload makes for each thread.
const NAMES_OF_A_THREAD: u64 = 70;

impl GridPoint for Task {
    const WORKLOAD: &'static str = "fs";
    const PROGRAM: &'static str = "FileSystem";

    fn threads(&self) -> u32 {
        self.threads
    }

    fn in_round(&self, sync: &str, round: u32) -> Self {
        let seed = self.seed.wrapping_add(u64::from(round));
        Self { sync: sync.to_owned(), seed, ..self.clone() }
    }

    fn simulate(load: &Load<Self>, run: &Run) -> Result<Finding, String> {
        let task = &load.task;
        let keys = u64::from(task.threads) * NAMES_OF_A_THREAD;
        let how = load.of_keys(keys);
        structure::simulate(
            run,
            how,
            |thread| task.random(thread),
            || Ok(Use { fs: own::simulated::make(task)?, load }),
        )
    }
}

/// A file system that simulated threads use.
struct Use<'a> {
    fs: Box<dyn FileSystem>,
    load: &'a Load<Task>,
}

impl SimulatedUse for Use<'_> {
    type Operations = fastrand::Rng;
    /// How often calls had to begin anew.
    type Tally = u64;
    type Actor<'a>
        = SimulatedThread<'a>
    where
        Self: 'a;

    fn actor(&self, thread: u32, random: fastrand::Rng) -> SimulatedThread<'_> {
        SimulatedThread { fs: &*self.fs, thread, worker: None, random, load: self.load }
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.fs.statistics(visit);
    }

    fn verify(&self, tallies: &[u64], operations: u64) -> Result<BTreeMap<String, f64>, String> {
        self.fs.check()?;
        let retries: u64 = tallies.iter().sum();
        Ok([(RETRIES.to_owned(), retries as f64 / operations.max(1) as f64)].into())
    }
}

/// A simulated thread.
struct SimulatedThread<'a> {
    fs: &'a dyn FileSystem,
    thread: u32,
    /// Set at its first operation, because the file system is filled before that.
    worker: Option<Box<dyn Worker + 'a>>,
    random: fastrand::Rng,
    load: &'a Load<Task>,
}

impl SimulatedActor<u64> for SimulatedThread<'_> {
    fn fill(&mut self) {
        self.fs.fill(&mut thread::progress);
    }

    fn act(&mut self) -> f64 {
        let random = self.random.u64(..);
        let (fs, thread) = (self.fs, self.thread);
        self.worker.get_or_insert_with(|| fs.worker(thread)).act(random);
        self.load.beside.ns(true)
    }

    fn tally(&self) -> u64 {
        self.worker.as_ref().map_or(0, |worker| worker.retries())
    }
}

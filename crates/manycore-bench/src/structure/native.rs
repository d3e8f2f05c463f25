//! Mechanisms at the points of a grid on this host: in rounds of slices, in worker processes.

use std::time::Duration;

use manycore_measure::Measurement;
use manycore_measure::paired::Rounds;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Grid, GridPoint, StructureSlice, records};
use crate::campaign::{Campaign, Contest, Samples, fault, subjects, values};
use crate::failure::Failure;
use crate::run_records::RunRecords;
use crate::slice::Pinning;
use crate::threads::ThreadSettings;
use crate::worker::{Command, Order, Subject, Through, Worker};

/// What to measure.
#[derive(Clone, Debug)]
pub struct NativeOptions<G> {
    /// What threads do.
    pub workload: G,
    /// Names of structures of others, to be measured as well.
    pub against: Vec<String>,
    /// The length of a slice with few threads per CPU; with many, slices are longer.
    pub slice: Duration,
    /// Operations of each thread in a slice, instead of a time.
    pub operations: Option<u64>,
    /// How often to repeat.
    pub rounds: Rounds,
    /// Which CPUs the threads run on.
    pub pinning: Pinning,
    /// How to start a worker.
    pub worker: Command,
    /// The command that starts the program with the structures of C libraries; `None` if it was not
    /// built.
    pub foreign: Option<Command>,
    /// Whether to show progress, if standard error is a terminal.
    pub progress: bool,
}

impl<G: Default> NativeOptions<G> {
    /// The usual workload, in 31 rounds.
    pub fn new(worker: Command) -> Self {
        Self {
            workload: G::default(),
            against: Vec::new(),
            slice: Duration::from_millis(30),
            operations: None,
            rounds: Rounds::Count(31),
            pinning: Pinning::Auto,
            worker,
            foreign: None,
            progress: false,
        }
    }
}

/// A grid whose points can be measured on this host.
pub(crate) trait NativeGrid: Grid<Task: NativeTask> {
    /// Checks the grid on this host, together with these structures of other libraries. `foreign`:
    /// the sets of C libraries are available.
    fn check_native(&self, against: &[String], foreign: bool) -> Result<(), Failure>;
}

/// A point of such a grid.
pub(crate) trait NativeTask: GridPoint {
    /// What a slice measures.
    type Slice: Serialize + DeserializeOwned;

    /// The task by a mechanism, in a few words, for progress reports.
    fn in_words(&self, sync: &str) -> String;

    /// Whether only the program with the structures of C libraries has the mechanism.
    fn is_foreign(_sync: &str) -> bool {
        false
    }

    /// What a slice measured that all structures have.
    fn used(slice: &Self::Slice) -> &StructureSlice;

    /// Adds a mechanism's own data about this point to its record, and the measurements that only
    /// this workload has.
    fn describe(&self, record: &mut Measurement, slices: &[Self::Slice]);
}

/// What runs in a slice, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings<T> {
    pub task: T,
    pub threads: ThreadSettings,
}

impl<T: NativeTask> Order for Settings<T> {
    const NAME: &'static str = T::WORKLOAD;
    type Answer = T::Slice;

    /// With a large structure to fill first.
    fn time_max(&self) -> Duration {
        self.threads.time_max()
    }
}

/// What was measured: the candidates are the names of mechanisms.
pub(crate) type NativeSamples<T> = Samples<T, String, <T as NativeTask>::Slice>;

/// Measures.
pub(crate) fn measure<G: NativeGrid>(options: &NativeOptions<G>) -> Result<RunRecords, Failure> {
    let NativeOptions { workload, against, slice, operations, rounds, foreign, .. } = options;
    workload.check_native(against, foreign.is_some())?;
    if let Some(fault) = fault(*slice, *operations, *rounds) {
        return Err(Failure::Usage(fault.into()));
    }
    let syncs = subjects(workload.syncs(), against);
    let samples = contest(options, workload.tasks(), syncs)?;
    Ok(RunRecords { measurements: samples.measurements()?, failures: samples.failures() })
}

/// Runs these mechanisms at these points, as the options say.
pub(crate) fn contest<G: NativeGrid>(
    options: &NativeOptions<G>,
    points: Vec<G::Task>,
    syncs: Vec<String>,
) -> Result<NativeSamples<G::Task>, Failure> {
    let NativeOptions { rounds, progress, .. } = *options;
    Campaign { rounds, seed: options.workload.seed(), progress }.run(options, points, syncs)
}

impl<G: NativeGrid> Contest for NativeOptions<G> {
    type Point = G::Task;
    type Candidate = String;
    type Slice = Settings<G::Task>;

    fn start(&self, sync: &String) -> Result<Worker, Failure> {
        let foreign = self.foreign.as_ref().filter(|_| G::Task::is_foreign(sync));
        let subject = Subject { lock: sync.clone(), through: Through::Native, shared: false };
        Worker::start(foreign.unwrap_or(&self.worker), &[], &subject)
    }

    fn slice(&self, point: &G::Task, sync: &String, round: u32) -> Self::Slice {
        let Self { slice, operations, pinning, .. } = *self;
        Settings {
            task: point.in_round(sync, round),
            threads: ThreadSettings::new(point.threads(), slice, operations, pinning),
        }
    }

    fn in_words(&self, point: &G::Task, sync: &String) -> String {
        point.in_words(sync)
    }
}

impl<T: NativeTask> Samples<T, String, T::Slice> {
    /// A record for each mechanism at each point.
    pub fn measurements(&self) -> Result<Vec<Measurement>, Failure> {
        let mut all = Vec::new();
        for point in 0..self.points.len() {
            all.extend(records::measured(self, point)?);
        }
        Ok(all)
    }

    /// The operations a second of a mechanism at a point, by round; `None` if it failed or does not
    /// exist.
    pub fn throughput(&self, point: usize, sync: &str) -> Option<Vec<f64>> {
        let sync = self.candidates.iter().position(|known| known == sync)?;
        Some(values(self.at(point, sync)?, |slice| T::used(slice).throughput()))
    }
}

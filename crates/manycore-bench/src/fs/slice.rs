//! One slice: threads use a file system for a short time, or this many operations, and are counted.
//!
//! It begins with a file system that was filled before; later slices use the same one. At the end
//! threads have moved everything back, and all links and names must agree.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::own::{self, FileSystem};
use super::task::Task;
use crate::counts::Counts;
use crate::footprint;
use crate::structure::{Settings, StructureSlice};
use crate::threads::{self, OperationLoop, Work};
use crate::worker::Executor;

/// What a slice measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Slice {
    /// What all structures have.
    pub used: StructureSlice,
    /// How often calls had to restart, for each operation.
    pub retries: f64,
}

/// Runs slices, in a worker.
pub(crate) fn executor() -> Executor {
    let mut kept = None;
    Executor::new(move |settings| run(&settings, &mut kept))
}

/// Runs one slice. The error, in one line, names the file system's mistake or the machine's
/// refusal.
fn run(settings: &Settings<Task>, kept: &mut Option<Filled>) -> Result<Slice, String> {
    let task = &settings.task;
    let filled = match kept.take() {
        Some(filled) if filled.is_for(task) => filled,
        _ => Filled::new(task)?,
    };
    let slice = filled.measure(settings)?;
    *kept = Some(filled);
    Ok(slice)
}

/// A file system with its initial contents.
struct Filled {
    fs: Arc<dyn FileSystem>,
    task: Task,
    bytes_per_key: f64,
}

impl Filled {
    fn new(task: &Task) -> Result<Self, String> {
        let before = footprint::in_use();
        let fs: Arc<dyn FileSystem> = Arc::from(own::native::make(task)?);
        let mut names = 0_u64;
        fs.fill(&mut || names += 1);
        let used = footprint::in_use().saturating_sub(before);
        Ok(Self { fs, task: task.clone(), bytes_per_key: used as f64 / names.max(1) as f64 })
    }

    /// Whether a task may go on with what is there.
    fn is_for(&self, task: &Task) -> bool {
        self.task == Task { seed: self.task.seed, ..task.clone() }
    }

    fn measure(&self, settings: &Settings<Task>) -> Result<Slice, String> {
        let (fs, task) = (&self.fs, &settings.task);
        let counts = Counts::read(|visit| fs.statistics(visit));
        let work = |thread| Use { fs: Arc::clone(fs), thread, random: task.random(thread) };
        let ran = threads::run(&settings.threads, work)?;
        let statistics = Counts::read(|visit| fs.statistics(visit)).since(&counts, ran.operations);
        fs.check()?;
        let used = StructureSlice {
            counts: ran.counts,
            elapsed_ns: ran.elapsed_ns,
            latency: ran.latency,
            bytes_per_key: self.bytes_per_key,
            garbage: ran.memory,
            statistics,
        };
        let retries: u64 = ran.outcomes.into_iter().sum();
        Ok(Slice { used, retries: retries as f64 / ran.operations.max(1) as f64 })
    }
}

/// What one thread does.
struct Use {
    fs: Arc<dyn FileSystem>,
    thread: u32,
    random: fastrand::Rng,
}

impl Work for Use {
    /// How often calls had to begin anew.
    type Outcome = u64;

    fn run(mut self, operations_loop: &mut OperationLoop<'_>) -> u64 {
        let mut worker = self.fs.worker(self.thread);
        operations_loop.run(|| self.random.u64(..), |random| worker.act(random));
        worker.retries()
    }
}

//! One slice: threads use an index for a short time, or for this many operations, and are counted.
//!
//! It begins with an empty index, which the first thread fills; a large one is kept for the next
//! slice. At the end every record must be there, with its own value. No update that read and wrote
//! in one step may be missing.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::any_index::{AnyIndex, Contender};
use super::operations::{Actor, Inserted, Operations, Tally};
use super::task::{Task, key_of};
use super::verify::{Verdict, verify};
use super::{own, peers};
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
    /// Entries that scans have read, for each operation.
    pub scanned: f64,
    /// The number of look-ups that have missed an existing record, for each operation.
    pub missed: f64,
    /// For each operation, the number of updates that read and then wrote, and that another update
    /// has undone; `None` if that was not counted.
    pub lost: Option<f64>,
}

impl Slice {
    /// Entries a second that scans have read.
    pub fn entries(&self) -> f64 {
        self.used.throughput() * self.scanned
    }
}

/// Runs slices, in a worker.
pub(crate) fn executor() -> Executor {
    let mut kept = None;
    Executor::new(move |settings| run(&settings, &mut kept))
}

/// Runs one slice. The error, in one line, names the index's mistake or the machine's refusal.
fn run(settings: &Settings<Task>, kept: &mut Option<Filled>) -> Result<Slice, String> {
    let task = &settings.task;
    let mut filled = match kept.take() {
        Some(filled) if filled.is_for(task) => filled,
        _ => Filled::new(task)?,
    };
    let slice = filled.measure(settings)?;
    *kept = task.records.is_many().then_some(filled);
    Ok(slice)
}

/// The contender for a task: one of this library's or of another one's.
pub(super) fn contender(task: &Task) -> Option<&'static Contender> {
    use super::any_index::find;
    let find = |contenders| find(contenders, &task.structure, &task.sync);
    find(own::native::CONTENDERS).or_else(|| find(peers::CONTENDERS))
}

/// An index with its first records.
struct Filled {
    index: Arc<dyn AnyIndex>,
    contender: &'static Contender,
    task: Task,
    /// The number of the next record that is inserted.
    next: u64,
    bytes_per_key: f64,
}

impl Filled {
    fn new(task: &Task) -> Result<Self, String> {
        let unknown = || format!("there is no {} by {}", task.structure, task.sync);
        let contender = contender(task).ok_or_else(unknown)?;
        if let Some(refusal) = contender.refusal(task) {
            return Err(refusal);
        }
        let numbers = task.records.first();
        let before = footprint::in_use();
        let index = (contender.make)(task);
        let mut handle = index.handle();
        numbers.iter().for_each(|number| handle.put(key_of(*number), 0));
        drop(handle);
        let used = footprint::in_use().saturating_sub(before);
        Ok(Self {
            index: Arc::from(index),
            contender,
            task: task.clone(),
            next: task.records.initial,
            bytes_per_key: used as f64 / numbers.len().max(1) as f64,
        })
    }

    /// Whether a task begins with what is there.
    fn is_for(&self, task: &Task) -> bool {
        let same = |a: &Task, b: &Task| a.structure == b.structure && a.sync == b.sync;
        same(&self.task, task) && self.task.records == task.records
    }

    fn measure(&mut self, settings: &Settings<Task>) -> Result<Slice, String> {
        let (index, task) = (&self.index, &settings.task);
        let inserted = Arc::new(Inserted::new(task.records.initial, self.next, task.threads));
        let counts = Counts::read(|visit| index.statistics(visit));
        let ranks = task.records.ranks();
        let work = |thread| Use {
            index: Arc::clone(index),
            thread,
            operations: Operations::new(task, thread, &ranks, &inserted),
            inserted: Arc::clone(&inserted),
        };
        let ran = threads::run(&settings.threads, work)?;
        let tally = Tally::sum(ran.outcomes);
        let each = |count: u64| count as f64 / ran.operations.max(1) as f64;
        let statistics =
            Counts::read(|visit| index.statistics(visit)).since(&counts, ran.operations);
        let Verdict { lost } =
            verify(&**index, self.contender.abilities, task, &inserted, &tally, || {})?;
        self.next = inserted.end();
        let used = StructureSlice {
            counts: ran.counts,
            elapsed_ns: ran.elapsed_ns,
            latency: ran.latency,
            bytes_per_key: self.bytes_per_key,
            garbage: ran.memory - inserted.count() as f64 * self.bytes_per_key,
            statistics,
        };
        let (scanned, missed) = (each(tally.scanned), each(tally.missed));
        Ok(Slice { used, scanned, missed, lost: lost.map(each) })
    }
}

/// What one thread does.
struct Use {
    index: Arc<dyn AnyIndex>,
    thread: u32,
    operations: Operations,
    inserted: Arc<Inserted>,
}

impl Work for Use {
    type Outcome = Tally;

    fn run(mut self, operations_loop: &mut OperationLoop<'_>) -> Tally {
        let mut actor = Actor::new(self.index.handle(), self.thread, &self.inserted);
        operations_loop.run(|| self.operations.draw(), |operation| actor.act(operation));
        actor.tally
    }
}

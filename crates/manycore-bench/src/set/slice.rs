//! One slice: threads use a set for a short time, or for a number of operations, and the slice
//! counts their operations.
//!
//! It begins with an empty set, which the first thread fills. The next slice keeps a large set.
//! Warm-up, reading of counters and the end are those of a [slice of locks](crate::slice). At the
//! end, the set must contain the keys that follow from the operations' results.

use std::sync::Arc;

use manycore_traits::SetHandle;

use super::contenders::{self, AnySet};
use super::peers::{self, Peer};
use super::task::{Operation, Operations, Task};
use crate::counts::Counts;
use crate::footprint;
use crate::structure::{Settings, StructureSlice};
use crate::threads::{self, OperationLoop, Ran, Work};
use crate::worker::Executor;

/// Runs slices, in a worker: of manycore's sets, those of [`peers`], and those of `more`.
pub fn executor(more: &'static [Peer]) -> Executor {
    let mut kept = None;
    Executor::new(move |settings| run(&settings, more, &mut kept))
}

/// Runs a slice. The error, in one line, says what the set did wrong or what the machine refused.
fn run(
    settings: &Settings<Task>,
    more: &[Peer],
    kept: &mut Option<Filled>,
) -> Result<StructureSlice, String> {
    let task = &settings.task;
    let filled = match kept.take() {
        Some(filled) if filled.is_for(task) => filled,
        _ => Filled::new(task, more)?,
    };
    let slice = measure(&filled, settings)?;
    *kept = task.keys.is_many().then_some(filled);
    Ok(slice)
}

/// A set that has its first keys.
pub(crate) struct Filled {
    set: Arc<dyn AnySet>,
    task: Task,
    bytes_per_key: f64,
}

impl Filled {
    fn new(task: &Task, more: &[Peer]) -> Result<Self, String> {
        let keys = task.keys.first();
        let before = footprint::in_use();
        let ours = contenders::native::make(task);
        let set = ours.or_else(|| peers::make(task, more));
        let set = set.ok_or_else(|| format!("there is no {} by {}", task.structure, task.sync))?;
        let mut handle = set.handle();
        keys.iter().for_each(|key| _ = handle.insert(*key));
        drop(handle);
        let used = footprint::in_use().saturating_sub(before);
        let bytes_per_key = used as f64 / keys.len().max(1) as f64;
        Ok(Self { set: Arc::from(set), task: task.clone(), bytes_per_key })
    }

    /// Whether a task can begin with this set.
    fn is_for(&self, task: &Task) -> bool {
        let same = |a: &Task, b: &Task| a.structure == b.structure && a.sync == b.sync;
        same(&self.task, task) && self.task.keys == task.keys
    }
}

/// One thread's part.
struct Use {
    set: Arc<dyn AnySet>,
    operations: Operations,
}

impl Work for Use {
    /// The number of keys that the thread has inserted, less those that it has removed.
    type Outcome = i64;

    fn run(mut self, operations_loop: &mut OperationLoop<'_>) -> i64 {
        let mut handle = self.set.handle();
        let mut added = 0;
        let operate = |operation| added += apply(&mut *handle, operation);
        operations_loop.run(|| self.operations.draw(), operate);
        added
    }
}

fn measure(filled: &Filled, settings: &Settings<Task>) -> Result<StructureSlice, String> {
    let Filled { set, bytes_per_key, .. } = filled;
    let (task, bytes_per_key) = (&settings.task, *bytes_per_key);
    let counts = Counts::read(|visit| set.statistics(visit));
    let ranks = task.keys.ranks();
    let work = |thread| Use { set: Arc::clone(set), operations: task.operations(thread, &ranks) };
    let ran: Ran<i64> = threads::run(&settings.threads, work)?;
    let added = ran.outcomes.iter().sum::<i64>();
    verify(&**set, added, task, LOOKED_UP, || ())?;
    Ok(StructureSlice {
        counts: ran.counts,
        elapsed_ns: ran.elapsed_ns,
        latency: ran.latency,
        bytes_per_key,
        garbage: ran.memory - added as f64 * bytes_per_key,
        statistics: Counts::read(|visit| set.statistics(visit)).since(&counts, ran.operations),
    })
}

/// Does an operation; returns by how much the number of keys grew.
#[inline]
pub(crate) fn apply(handle: &mut dyn SetHandle<u64>, operation: Operation) -> i64 {
    match operation {
        Operation::Contains(key) => {
            std::hint::black_box(handle.contains(&key));
            0
        }
        Operation::Insert(key) => i64::from(handle.insert(key)),
        Operation::Remove(key) => -i64::from(handle.remove(&key)),
    }
}

/// The largest range of which each key is looked up at the end.
const LOOKED_UP: u64 = 200_000;

/// Checks that the set has as many keys as the threads were told, if the range is small enough to
/// look each key up. Calls `progress` before each look-up.
pub(super) fn verify(
    set: &dyn AnySet,
    added: i64,
    task: &Task,
    range_max: u64,
    progress: impl Fn(),
) -> Result<(), String> {
    if task.keys.range <= range_max {
        let mut handle = set.handle();
        let is_there = |key: &u64| {
            progress();
            handle.contains(key)
        };
        let found = (0..task.keys.range).filter(is_there).count() as i64;
        let told = task.keys.initial as i64 + added;
        if found != told {
            return Err(format!(
                "the set has {found} keys, but the results of the operations add up to {told}"
            ));
        }
    }
    Ok(())
}

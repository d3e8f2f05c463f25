//! One slice: threads run transactions for a short time, or this many, and are counted.
//!
//! It begins with a database that the first thread has filled; later slices use the same database.
//! At the end all additions must be there, and the consistency conditions must hold.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::database::{Contender, Database, find};
use super::operations::{Actor, Draws, Tally, Transaction, verify};
use super::task::Task;
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
    /// Times that conditions were looked at, for each transaction.
    pub audits: f64,
}

/// Runs slices, in a worker.
pub(crate) fn executor() -> Executor {
    let mut kept = None;
    Executor::new(move |settings| run(&settings, &mut kept))
}

/// Runs one slice. The error, in one line, names the database's mistake or the machine's refusal.
fn run(settings: &Settings<Task>, kept: &mut Option<Filled>) -> Result<Slice, String> {
    let task = &settings.task;
    let mut filled = match kept.take() {
        Some(filled) if filled.is_for(task) => filled,
        _ => Filled::new(task)?,
    };
    let slice = filled.measure(settings)?;
    *kept = Some(filled);
    Ok(slice)
}

/// The contender for a task: one of this library's or of another one's.
fn contender(task: &Task) -> Option<&'static Contender> {
    find(own::native::CONTENDERS, &task.sync).or_else(|| find(peers::CONTENDERS, &task.sync))
}

/// A database with its first rows.
struct Filled {
    database: Arc<dyn Database>,
    task: Task,
    /// What slices have added to records.
    added: u64,
    bytes_per_key: f64,
}

impl Filled {
    fn new(task: &Task) -> Result<Self, String> {
        let unknown = || format!("there is no database by {}", task.sync);
        let contender = contender(task).ok_or_else(unknown)?;
        let before = footprint::in_use();
        let database: Arc<dyn Database> = Arc::from((contender.make)(task));
        let mut rows = 0_u64;
        Actor::new(database.session()).fill(task, &mut || rows += 1);
        let used = footprint::in_use().saturating_sub(before);
        let bytes_per_key = used as f64 / rows.max(1) as f64;
        Ok(Self { database, task: task.clone(), added: 0, bytes_per_key })
    }

    /// Whether a task may go on with what is there.
    fn is_for(&self, task: &Task) -> bool {
        let known = &self.task;
        known.sync == task.sync && known.mix == task.mix && known.size == task.size
    }

    fn measure(&mut self, settings: &Settings<Task>) -> Result<Slice, String> {
        let (database, task) = (&self.database, &settings.task);
        let counts = Counts::read(|visit| database.statistics(visit));
        let ranks = task.popularity.ranks(task.size.records);
        let work = |thread| Use {
            database: Arc::clone(database),
            draws: Draws::new(task, thread, &ranks),
        };
        let ran = threads::run(&settings.threads, work)?;
        let tally = Tally::sum(ran.outcomes);
        let statistics =
            Counts::read(|visit| database.statistics(visit)).since(&counts, ran.operations);
        self.added += tally.added;
        verify(&mut *database.session(), task, &tally, self.added, &mut || {})?;
        let used = StructureSlice {
            counts: ran.counts,
            elapsed_ns: ran.elapsed_ns,
            latency: ran.latency,
            bytes_per_key: self.bytes_per_key,
            garbage: ran.memory,
            statistics,
        };
        Ok(Slice { used, audits: tally.audits as f64 / ran.operations.max(1) as f64 })
    }
}

/// What one thread does.
struct Use {
    database: Arc<dyn Database>,
    draws: Draws,
}

impl Work for Use {
    type Outcome = Tally;

    fn run(mut self, operations_loop: &mut OperationLoop<'_>) -> Tally {
        let mut actor = Actor::new(self.database.session());
        operations_loop
            .run(|| self.draws.draw(), |transaction: Transaction| actor.act(&transaction));
        actor.tally
    }
}

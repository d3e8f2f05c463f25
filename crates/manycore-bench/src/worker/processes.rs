//! The workers of a round, one for each candidate.

use super::order::Order;
use super::remote::Worker;
use crate::failure::Failure;

/// The workers of candidates, by index. They are started when they are needed, and ended when this
/// is dropped.
pub(crate) struct WorkerProcesses(Vec<Option<Worker>>);

impl WorkerProcesses {
    /// Creates one for this many candidates.
    pub fn new(candidates: usize) -> Self {
        Self((0..candidates).map(|_| None).collect())
    }

    /// Sends an order to a candidate's worker. A worker that fails is ended.
    pub fn execute<O: Order>(
        &mut self,
        candidate: usize,
        start: impl FnOnce() -> Result<Worker, Failure>,
        order: &O,
    ) -> Result<O::Answer, Failure> {
        let mut worker = self.0[candidate].take().map_or_else(start, Ok)?;
        let answer = worker.execute(order)?;
        self.0[candidate] = Some(worker);
        Ok(answer)
    }

    /// Ends a candidate's worker, with all threads that are stuck in it.
    pub fn end(&mut self, candidate: usize) {
        self.0[candidate] = None;
    }
}

//! What a workload is.

use crate::front::Front;
use crate::simulated::Simulator;
use crate::worker::Executor;

/// A workload: all that the command, its workers and the processes that simulate need to know of
/// it.
///
/// Each part is there or not: some workloads are only measured, some only simulated.
pub(crate) trait Workload: Sync {
    /// The parts after `manycore bench`: flags, measuring, rows, text and picture, by
    /// [`Benchmark`](crate::front::Benchmark).
    fn measured(&self) -> Vec<Front> {
        Vec::new()
    }

    /// The same after `manycore sim`.
    fn simulated(&self) -> Vec<Front> {
        Vec::new()
    }

    /// Executes its orders in a worker that was started for this lock.
    fn executors(&self, _lock: &str) -> Vec<Executor> {
        Vec::new()
    }

    /// What simulates its programs.
    fn simulators(&self) -> Vec<Simulator> {
        Vec::new()
    }
}

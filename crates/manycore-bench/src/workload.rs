//! What a workload is.

use crate::front::Front;
use crate::simulated::Simulator;
use crate::worker::Executor;

/// A workload: everything that the command, its workers and the simulating processes need to know
/// about it.
///
/// Each part is optional: some workloads are only measured, others only simulated.
pub(crate) trait Workload: Sync {
    /// The parts of `manycore bench`: flags, measuring, rows, text and picture, by
    /// [`Benchmark`](crate::front::Benchmark).
    fn measured(&self) -> Vec<Front> {
        Vec::new()
    }

    /// The same after `manycore sim`.
    fn simulated(&self) -> Vec<Front> {
        Vec::new()
    }

    /// The functions that execute its orders, in a worker that was started for this lock.
    fn executors(&self, _lock: &str) -> Vec<Executor> {
        Vec::new()
    }

    /// What simulates its programs.
    fn simulators(&self) -> Vec<Simulator> {
        Vec::new()
    }
}

//! What a workload is.

use crate::simulated::Simulator;
use crate::worker::Executor;

/// A workload: all that the processes of this crate need to know of it.
pub(crate) trait Workload: Sync {
    /// What executes its orders in a worker that was started for this lock.
    fn executors(&self, _lock: &str) -> Vec<Executor> {
        Vec::new()
    }

    /// What simulates its programs.
    fn simulators(&self) -> Vec<Simulator> {
        Vec::new()
    }
}

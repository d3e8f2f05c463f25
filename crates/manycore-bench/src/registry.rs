//! The workloads that there are: a line each.

use std::io;

use crate::workload::Workload;
use crate::{accuracy, kernel, lock, rmap, set, simulated, syscall, uncontended, worker};

/// All workloads.
const WORKLOADS: &[&dyn Workload] = &[
    &lock::Locks,
    &set::Sets,
    &uncontended::Uncontended,
    &kernel::KernelModel,
    &rmap::ReverseMaps,
    &syscall::ServerModel,
    &accuracy::Accuracy,
];

/// Serves a harness as the worker of this lock, for as long as it has orders.
pub fn serve_worker(lock: &str) -> io::Result<()> {
    worker::serve(WORKLOADS.iter().flat_map(|workload| workload.executors(lock)).collect())
}

/// Simulates for the process at the other end of standard input and output, for as long as it has jobs.
pub fn serve_simulator() -> io::Result<()> {
    let simulators: Vec<_> = WORKLOADS.iter().flat_map(|workload| workload.simulators()).collect();
    simulated::serve(&simulators)
}

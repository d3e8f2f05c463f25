//! CPUs of the simulated machine.

use manycore_sim::backend;

/// How many CPUs the simulated program may run on.
pub fn count() -> u32 {
    backend::cpus()
}

/// The CPU on which the calling thread runs.
pub fn current() -> u32 {
    backend::cpu()
}

/// [`current`]: that is exact here.
pub fn here() -> u32 {
    current()
}

/// How many nodes of memory the simulated machine has.
pub fn nodes() -> u32 {
    backend::nodes()
}

/// The node to which the calling thread's CPU belongs.
pub fn node() -> u32 {
    backend::node()
}

//! Threads of the simulated program.

/// The number of the calling thread.
pub fn id() -> u32 {
    manycore_sim::backend::thread()
}

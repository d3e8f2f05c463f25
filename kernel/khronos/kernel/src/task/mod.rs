//! Threads and processes.

pub mod process;
pub mod sched;
pub mod signal;
pub mod thread;
pub mod timer;

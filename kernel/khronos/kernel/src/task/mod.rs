//! Threads and processes.

pub mod elf;
pub mod exec;
pub mod exit;
pub mod fork;
pub mod process;
pub mod sched;
pub mod sigframe;
pub mod signal;
pub mod thread;
pub mod timer;
pub mod user;

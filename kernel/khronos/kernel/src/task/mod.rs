//! Processes, and what they are made of.

pub mod elf;
pub mod exec;
pub mod exit;
pub mod fork;
pub mod process;
pub mod sigframe;
pub mod signal;
pub mod timer;

pub use crate::sync::{sched, thread, user};

//! From what processes counted to a profile.

pub mod advice;
pub mod assemble;
pub mod cpu_samples;
mod finding;
pub mod futex;
pub mod groups;
pub mod live;
pub mod names;
pub mod offloaded_calls;
pub mod process;
pub mod run_analysis;

//! From what processes counted to a profile.
//!
//! | module | what is in it |
//! |---|---|
//! | [`process`] | a process' file, and what it says: [`ProcessStats`](process::ProcessStats) |
//! | [`names`] | what an address is called, and which call tells what a lock is for |
//! | [`groups`] | the locks that are shown as one |
//! | [`run_analysis`] | over time, by thread, which thread waited for which, in which order |
//! | [`cpu_samples`] | what threads did while they were on a CPU, from sampled stacks |
//! | [`futex`] | waits for words of the program's own, which the kernel has seen |
//! | [`offloaded_calls`] | system calls that other threads executed, and those left in place |
//! | `finding`, `advice` | what a profile says, in a sentence; what would help |
//! | [`mod@assemble`] | all of these, put together |
//! | [`live`] | pictures of a program that runs: until now, and in the last interval |

mod advice;
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

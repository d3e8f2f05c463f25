//! The same workloads on simulated machines.
//!
//! A thread does there what it does on a real machine, by the same loop: `stage` is where it does it. What determines a
//! result is a *job*; jobs are dealt out to processes, and their results kept.
//!
//! | module | what is in it |
//! |---|---|
//! | [`lock`] | threads that contend for locks |
//! | [`many`] | locks against each other on all machines with many CPUs |
//! | [`set`] | threads that use a set |
//! | [`accuracy`] | the simulator against this host |
//! | `batch` | a number of acquisitions of a lock, by tasks |
//! | `stage` | locks and data in simulated memory |
//! | `job` | one simulation: what determines it, and what comes of it |
//! | `sections` | the simulated program of threads that contend for locks |
//! | `campaign` | every mechanism at every point |
//! | `crew` | processes that simulate, one simulation each at a time |
//! | `cache` | results that are kept |
//! | `plan` | what is to be simulated, to be divided and looked at before it is |
//! | `outlook` | how long that is going to take |
//! | [`db`] | a database whose threads contend for a few hot latches |
//! | [`syscall`] | a server, and where its system calls are executed |
//! | [`kernel`] | applications whose calls take several locks of the kernel |
//! | [`predict`] | a program's locks, by its profile |
//! | `variant` | what the machine might be like as well |
//! | `question` | what can be asked |
//! | `record` | from results to records |

mod cache;
pub(crate) mod campaign;
pub(crate) mod job;
pub(crate) mod outlook;
mod plan;
pub(crate) mod pool;
pub(crate) mod question;
pub(crate) mod record;
pub(crate) mod variant;

pub(crate) use crate::lock::stage::Window;
pub use cache::{Cache, Merged};
pub(crate) use campaign::Campaign;
pub use job::Beside;
pub(crate) use job::{Finding, Job, Program, Run, sight};
pub use outlook::Outlook;
pub use plan::Plan;
pub use pool::{Crew, serve};
pub use variant::variants;

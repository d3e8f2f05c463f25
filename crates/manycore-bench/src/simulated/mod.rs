//! Simulations: jobs, the processes that run them, and results that are kept.
//!
//! A thread on a simulated machine does the same as on a real one. A *job* has everything that
//! determines a result; jobs are distributed to processes, and their results kept. The workload
//! (`SimulatedProgram`) defines the threads' work: nothing here knows any workload.
//!
//! | module | what is in it |
//! |---|---|
//! | `job` | one simulation: what determines it, and what comes of it |
//! | `program`, `run` | what threads do; a job on its machine, and what is seen of it |
//! | `window` | the time that is counted |
//! | `campaign` | every mechanism at every point |
//! | `pool` | processes that simulate, one simulation each at a time |
//! | `cache`, `hash` | results that are kept, and their names |
//! | `plan` | what is to be simulated, to be divided and looked at before it is |
//! | `outlook` | how long that is going to take |
//! | `variant` | what the machine might be like as well |
//! | `question` | what can be asked |
//! | `record` | from results to records |

mod cache;
mod campaign;
mod hash;
mod job;
mod outlook;
mod plan;
mod pool;
mod program;
mod question;
pub(crate) mod record;
mod run;
pub(crate) mod variant;
mod window;

pub use cache::{Cache, Merged};
pub(crate) use campaign::SimulatedCampaign;
pub use job::Beside;
pub(crate) use job::{Finding, Job, Program};
pub use outlook::Outlook;
pub use plan::Plan;
pub(crate) use pool::Answer;
pub use pool::{SimulatorPool, serve};
pub(crate) use program::SimulatedProgram;
pub use program::Simulator;
#[cfg(test)]
pub(crate) use program::simulate;
pub(crate) use question::{Question, THREADS_MAX};
pub(crate) use run::{Run, sight};
pub use variant::variants;
pub(crate) use window::{Count, Window};

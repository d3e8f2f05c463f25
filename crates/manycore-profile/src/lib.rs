//! Contention data of a program: what `manycore profile` collects and shows.
//!
//! The preloaded libraries count in mapped files, whose layout is the crate [`manycore_stats`]. This
//! crate reads what they wrote:
//!
//! | module | what is in it |
//! |---|---|
//! | [`mapping`] | a process' file, opened and checked |
//! | [`process`] | all that a file says, added up over the threads |
//! | [`clock`] | the ticks that times are in |
//! | [`files`], `listed` | the files that processes have mapped, found while they live and kept open |
//! | `modules`, `symbols`, `wrapper`, `name` | what an address is called, and which caller tells what a lock is for |
//! | `handovers` | condition variables that are locks of the program's own making |
//! | [`futex`] | waits for words of the program's own, which the kernel has seen |
//! | [`samples`] | what threads did while they were on a CPU, from sampled stacks |
//! | `estimate` | what a sample of holds says of all |
//! | `groups` | the locks that are shown as one |
//! | [`mod@assemble`] | the profile of a run: sums over processes, where the time went |
//! | [`live`] | pictures of a program that runs: until now, and in the last interval |
//! | [`profile`] | the model, which is also the JSON |
//! | `finding`, `notes` | what a profile says, in a sentence; what would help |
//! | [`whole`] | the run as a whole: over time, by thread, who waited for whom, in which order |
//! | [`moved`] | system calls that other threads executed, and those that were left in place |
//! | [`command`] | commands as a person pastes them |
//!
//! A program that takes no lock at all has a profile, too:
//!
//! ```
//! use manycore_profile::analyze::assemble::{Run, Watched, assemble};
//! use manycore_profile::clock::Clock;
//! use manycore_profile::profile::Exit;
//! use manycore_measure::Host;
//!
//! let clock = Clock::start();
//! let run = Run {
//!     command: vec!["true".into()],
//!     host: Host::describe(),
//!     exit: Exit::Status(0),
//!     lock: "futex".into(),
//!     is_interposed: true,
//!     wall: 0.001,
//!     kernel: 0.0005,
//!     user: 0.0005,
//!     rate: clock.rate(),
//!     is_server: false,
//!     running: vec![],
//!     not_interposed: vec![],
//!     silent: 0,
//!     watched: Watched::default(),
//! };
//! let profile = assemble(run, &[]);
//! assert!(profile.locks.is_empty());
//! assert!(profile.finding.contains("no pthread lock"));
//! ```

pub mod analyze;
pub mod clock;
pub mod command;
pub mod profile;
pub mod record;
pub mod render;
mod text;

pub use text::{harmless, percent, safe, seconds};

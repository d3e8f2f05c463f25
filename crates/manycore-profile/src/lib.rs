//! Contention data of a program: what `manycore profile` collects and shows.
//!
//! [`layout`] is the shared mapping that the preloaded library writes while the program runs, one file a process.
//! It is there after the process has died by any means, and can be read while it lives.
//!
//! ```
//! use manycore_profile::layout::Histogram;
//!
//! let waits = Histogram::default();
//! for ticks in [100, 120, 90_000] {
//!     waits.count(ticks);
//! }
//! let p50 = waits.quantile(0.5).unwrap();
//! assert!((100..160).contains(&p50));
//! ```
//!
//! # From a mapping to a profile
//!
//! With the feature `read`, the rest of this crate reads what was written:
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
//! # #[cfg(feature = "read")] {
//! use manycore_profile::assemble::{Run, Watched, assemble};
//! use manycore_profile::clock::Clock;
//! use manycore_profile::profile::Exit;
//! use manycore_report::Host;
//!
//! let clock = Clock::start();
//! let run = Run {
//!     command: vec!["true".into()],
//!     host: Host::describe(),
//!     exit: Exit::Status(0),
//!     lock: "futex".into(),
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
//! # }
//! ```
#![cfg_attr(not(feature = "read"), no_std)]

pub mod layout;

#[cfg(feature = "read")]
pub mod assemble;
#[cfg(feature = "read")]
pub mod clock;
#[cfg(feature = "read")]
pub mod command;
#[cfg(feature = "read")]
mod estimate;
#[cfg(feature = "read")]
pub mod files;
#[cfg(feature = "read")]
mod finding;
#[cfg(feature = "read")]
pub mod futex;
#[cfg(feature = "read")]
mod groups;
#[cfg(feature = "read")]
mod handovers;
#[cfg(feature = "read")]
mod listed;
#[cfg(feature = "read")]
pub mod live;
#[cfg(feature = "read")]
pub mod mapping;
#[cfg(feature = "read")]
mod modules;
#[cfg(feature = "read")]
pub mod moved;
#[cfg(feature = "read")]
mod name;
#[cfg(feature = "read")]
mod notes;
#[cfg(feature = "read")]
pub mod others;
#[cfg(feature = "read")]
pub mod process;
#[cfg(feature = "read")]
pub mod profile;
#[cfg(feature = "read")]
pub mod samples;
#[cfg(feature = "read")]
mod symbols;
#[cfg(feature = "read")]
mod tally;
#[cfg(feature = "read")]
pub use symbols::{harmless, safe};
#[cfg(feature = "read")]
pub mod whole;
#[cfg(feature = "read")]
mod wrapper;

//! Contention data of a program: what `manycore profile` collects and shows.
//!
//! Preloaded libraries count in mapped files, whose layout is the crate [`manycore_stats`]. From
//! there data go one way:
//!
//! | room | what is in it |
//! |---|---|
//! | [`record`] | starts a program, polls it while it runs, reads what its processes left |
//! | [`analyze`] | adds up, gives names, divides the time: builds a [profile](profile::Profile) |
//! | [`render`] | draws a profile: tables, a page, stacks in lines, a trace, a difference |
//! | [`profile`] | the model, which is also the JSON; read back by [`profile::read`] |
//!
//! [`clock`] has the ticks that times are in, [`command`] commands as a person pastes them.
//!
//! A lock has four forms on the way: a mapped [`Record`](manycore_stats::Record); a row of
//! [`ProcessStats`](analyze::process::ProcessStats), added up over the threads of one process; a
//! row of [`Groups`](analyze::groups::Groups), the locks that are shown as one, over all processes,
//! in ticks; and a [`Lock`](profile::Lock) of the profile, in nanoseconds and with names. A profile
//! does not change after [`assemble`](fn@analyze::assemble::assemble) has built it.
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

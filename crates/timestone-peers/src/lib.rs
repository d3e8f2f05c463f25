//! TimeStone beside other embedded stores: the same numbers, in turn, on the same disk.
//!
//! Rounds are interleaved: in each round, every engine has one slice, in an order drawn for the
//! round. The output is each engine's median, and TimeStone's ratio to that engine, from the pairs
//! within rounds.
//!
//! ```
//! use clap::Parser;
//!
//! #[derive(Parser)]
//! struct Bench {
//!     #[command(flatten)]
//!     options: timestone_peers::Options,
//! }
//!
//! let points = ["bench", "--threads", "1", "--update", "50", "--rounds", "3", "--slice", "0.01"];
//! let Bench { options } = Bench::parse_from(points);
//! options.check()?;
//! let mut tables = String::new();
//! options.run(|table| tables.push_str(table))?;
//! assert!(tables.contains("timestone"));
//! # Ok::<(), timestone_peers::Failure>(())
//! ```
//!
//! The other engines are there with the feature `engines`: three of them are large, and one is
//! written in C. libpmemobj is there with the feature `pmemobj`, where Debian's `libpmemobj-dev`
//! is.

mod command;
mod engine;
mod engines;
#[cfg(feature = "engines")]
mod fjall;
#[cfg(feature = "engines")]
mod lmdb;
mod memory;
mod ours;
#[cfg(has_pmemobj)]
mod pmemobj;
#[cfg(feature = "engines")]
mod redb;
mod slice;
#[cfg(feature = "engines")]
mod sqlite;
mod written;

pub use command::{BadUsage, Options};
pub use engine::{Failure, Promise};

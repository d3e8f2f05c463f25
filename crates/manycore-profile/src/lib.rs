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
#![cfg_attr(not(feature = "read"), no_std)]

pub mod layout;

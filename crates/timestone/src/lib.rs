//! Durable transactions on objects in memory.
//!
//! This crate is under way: so far it has the files of a store, with their order of writes and their recovery
//! ([`volume`]), and devices on which programs can be tested with power cuts ([`device`]).
//!
//! ```
//! use timestone::device::{Device, Simulated, Storage};
//!
//! let disk = Simulated::new();
//! let file = disk.open("numbers")?;
//! file.write_at(0, &[7; 512])?;
//! let mut left = 0;
//! disk.recording().cuts(0, |_, cut| {
//!     cut.images(&mut fastrand::Rng::with_seed(1), 100, false, |_disk_after_the_crash| left += 1);
//! });
//! assert!(left > 1, "nothing was flushed: the file may be missing, empty, or there");
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod device;
mod error;
pub mod journal;
pub mod superblock;
pub mod volume;

pub use error::{Error, Result};

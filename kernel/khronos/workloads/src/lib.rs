//! The operations of threads on a file system, to measure it: natively, in the kernel, and
//! simulated.
//!
//! The names are those of FxMark (C. Min, S. Kashyap, S. Maass, W. Kang and T. Kim, "Understanding
//! Manycore Scalability of File Systems", USENIX ATC 2016): data or metadata, read or write, the
//! object, and the degree of sharing between threads, from low to high. Ours are similar, and go on
//! for ever: later operations remove what earlier ones make, so directories keep their size.
//!
//! ```
//! use khronos_fs::{Options, Sync};
//! use khronos_workloads::{Stage, Workload};
//!
//! let stage = Stage::new(Workload::MWRM, Options::new(Sync::MvRlu), 2);
//! stage.fill(&mut || ());
//! let mut worker = stage.worker(1);
//! (0..10).for_each(|random| worker.act(random));
//! drop(worker);
//! stage.check().unwrap();
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod calls;
#[cfg(feature = "sim")]
pub mod sharing;
mod stage;
mod worker;
mod workload;

pub use stage::Stage;
pub use worker::Worker;
pub use workload::Workload;

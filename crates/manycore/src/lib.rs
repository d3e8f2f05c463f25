//! Locks and deferred update for machines with many cores.
//!
//! | module | what is in it |
//! |---|---|
//! | [`lock`] | mutual exclusion: a file per algorithm, from test-and-set to one that learns; condition variables |
//! | [`collections`] | sets and maps that many threads use at once: a folder per structure, a file per mechanism |
//! | [`delegate`] | sections that run on the thread that has the data |
//! | [`ldu`] | updates that are logged, and applied when somebody reads |
//! | [`oplog`] | the same for any operations, by clocks |
//! | [`reclaim`] | grace periods: when memory that others may still read can be freed (RCU) |
//! | [`mvrlu`] | objects with versions: snapshots for readers, transactions for writers (MV-RLU) |
//! | [`rlu`] | the same interface with two versions: writers wait for readers (RLU) |
//! | [`session`] | the safe interface to that |
//! | [`clock`] | what orders commits: the CPUs' counters (ORDO), or a counter |
//! | [`sync`] | the one place that names atomics, parking, clocks and CPUs, with a back end a platform |
//!
//! # A first program
//!
//! With the feature `lock_api` every lock is a drop-in for `lock_api::Mutex` or `lock_api::RwLock`; without it, the raw
//! interfaces of [`RawLock`] and [`RawRwLock`] are all there is:
//!
//! ```
//! use manycore::{RawLock, lock::Futex};
//!
//! let lock = Futex::new();
//! // SAFETY: the node lives until `unlock`, and this thread holds the lock when it unlocks.
//! unsafe {
//!     lock.lock(&mut ());
//!     assert!(!lock.try_lock(&mut ()));
//!     lock.unlock(&mut ());
//! }
//! ```
//!
//! # One source per algorithm
//!
//! The same lines are compiled for a Rust program, for the library that `manycore run` preloads into a program
//! written by somebody else, for the loom model checker (`--cfg loom`) and for a machine without an operating
//! system. They differ only in the back end of [`sync`].
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(test, loom, manycore_bare))]
extern crate std;

pub mod clock;
pub mod collections;
mod counters;
pub mod delegate;
pub mod ldu;
pub mod lock;
pub mod mvrlu;
pub mod oplog;
pub mod reclaim;
pub mod rlu;
pub mod session;
pub mod sync;

pub use manycore_traits::{
    ConcurrentMap, ConcurrentSet, Interval, LockInfo, MapHandle, Order, RawLock, RawRwLock,
    ReverseMap, SetHandle,
};

//! Locks, grace periods, versions, deferred update and collections on them, for machines with many
//! cores.
//!
//! ```
//! # #[cfg(feature = "lock_api")] {
//! static TOTAL: manycore::Mutex<u64> = manycore::Mutex::new(0);
//! *TOTAL.lock() += 1;
//! # }
//! let users = manycore::collections::space::HashMap::<String, u32>::new();
//! users.insert("ada".into(), 36);
//! assert_eq!(users.get("ada"), Some(36));
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | [`lock`] | mutual exclusion, a file per algorithm; condition variables |
//! | [`collections`] | sets and maps: a folder per structure, a file per mechanism |
//! | [`delegate`] | sections that run on the thread that has the data |
//! | [`ldu`] | updates that a read applies; [in order](ldu::ordered) for queues and stacks |
//! | [`oplog`] | the same for any operations, by clocks |
//! | [`reclaim`] | grace periods: when memory that others may still read can be freed (RCU) |
//! | [`mvrlu`] | objects with versions: snapshots for readers, transactions for writers (MV-RLU) |
//! | [`rlu`] | the same interface with two versions: writers wait for readers (RLU) |
//! | [`session`] | the safe interface to that |
//! | [`clock`] | what orders commits: the CPUs' counters (ORDO), or a counter |
//! | [`sync`] | atomics, parking, clocks and CPUs, with a back end a platform |
//!
//!
//! # Which one
//!
//! A lock around a structure is where to begin. When threads wait for it, and another lock does not
//! help:
//!
//! | threads | then | example |
//! |---|---|---|
//! | read, one thing at a time | [`reclaim`]: readers take no lock | `examples/rcu.rs` |
//! | use several things at once | [`mvrlu`]: sessions of one moment | `examples/transactions.rs` |
//! | insert and remove, hardly read | [`ldu`]: updates that cancel | `examples/deferred.rs` |
//! | log other operations, hardly read | [`oplog`]: logs merged by time | `examples/oplog.rs` |
//! | add to a queue or a stack, and seldom take out | [`ldu::ordered`]: runs merged by time | |
//! | change the same few lines | [`delegate`]: one does it for others | `examples/combining.rs` |
//!
//! `cargo run --release -p manycore --example rcu` runs the first. The book's chapter
//! `docs/src/choosing.md` goes through the questions one by one, and [`collections`] has sets and
//! maps over most of these.
//!
//! # Features
//!
//! | feature | on by itself | what it does |
//! |---|---|---|
//! | `lock_api` | yes | `Mutex`, `RwLock`, `Condvar`; every lock for the crate `lock_api` |
//! | `std` | yes | a panic in a delegated section returns to its sender, and does not abort |
//!
//! Locks without the data that they protect are there without a feature: [`RawLock`],
//! [`RawRwLock`].
//!
//! # Without an operating system
//!
//! The crate is `no_std`: it wants an allocator, and for locks not even that. On a machine without
//! Linux, or with `--cfg manycore_bare`, [`sync`] asks the kernel that links it for a dozen
//! functions, such as to wait on a word and to say which CPU this is. Raw layers below the safe
//! ones take objects as a kernel has them: [`RawSession`](manycore_traits::RawSession) and objects
//! of any size for [`mvrlu`], [`ldu::Node`] in the object, [`reclaim::Guard::retire_with`] with a
//! function. `manycore-capi` is made of these, for programs in C and C++.
//!
//! # One source per algorithm
//!
//! The same lines are compiled for a Rust program, for the library that `manycore run` preloads
//! into an unmodified program, for the loom model checker (`--cfg loom`) and for a machine without
//! an operating system. They differ only in the back end of [`sync`].
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_debug_implementations)]

extern crate alloc;
#[cfg(any(test, loom, feature = "std"))]
extern crate std;

#[macro_use]
mod opaque;

mod asymmetry;
pub mod clock;
pub mod collections;
mod counters;
pub mod delegate;
mod due;
mod exhaust;
pub mod ldu;
pub mod lock;
pub mod mvrlu;
mod object_pool;
pub mod oplog;
#[cfg(doctest)]
mod outlive;
mod per_cpu;
pub mod reclaim;
pub mod rlu;
pub mod session;
pub mod sync;
mod thread_registry;

#[cfg(all(feature = "lock_api", not(loom)))]
pub use lock::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(all(feature = "lock_api", not(loom)))]
pub use lock_api;
pub use manycore_traits::{
    ConcurrentMap, ConcurrentSet, Interval, LockInfo, MapHandle, Order, RawLock, RawRwLock,
    ReverseMap, SetHandle,
};

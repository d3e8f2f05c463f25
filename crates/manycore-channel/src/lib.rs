//! The parts that carry a system call to the thread that executes it, and a table of the
//! descriptors whose calls are carried.
//!
//! In these parts threads share data: the model checker checks them, and the simulator runs them
//! (`manycore-channel-simulated` is built from these sources). They call no kernel;
//! `manycore-syscalls` does.
//!
//! | module | what is in it |
//! |---|---|
//! | [`call`] | a call and its answer |
//! | [`slot`] | a call on its way: the caller's node, its reply, its cancellation |
//! | [`queue`] | calls on their way to a worker that serves many, and the bell that wakes it |
//! | [`blocking_worker`], [`stack`] | a thread that executes one call at a time; idle ones |
//! | [`descriptors`] | which route the calls on a descriptor take: a lock-free table |
//!
//! ```
//! # #[cfg(not(loom))] {
//! use manycore_channel::descriptors::{Entry, Lookup, Slot, Table};
//!
//! // Calls on descriptor 3 are executed on route 7, until it is closed.
//! let (entries, slots) = ([const { Entry::new() }; 8], [const { Slot::new() }; 4]);
//! let table = Table::new(&entries, &slots, |route| assert_eq!(route, 7));
//! assert!(table.steer(3, 7, 0));
//! assert!(matches!(table.find(3), Lookup::Steered(_)));
//! table.forget(3);
//! assert!(matches!(table.find(3), Lookup::Unknown));
//! # }
//! ```
#![no_std]

#[cfg(loom)]
extern crate std;

pub mod blocking_worker;
pub mod call;
// Simulated programs have no descriptors.
#[cfg(not(feature = "sim"))]
pub mod descriptors;
pub mod queue;
pub mod slot;
pub mod stack;

//! A deterministic simulator of cache-coherent machines with many cores.
//!
//! Programs run unchanged, on threads that are coroutines, against a model of the machine: private
//! and shared caches, a directory that serves each line's requests in order, memory nodes, links,
//! and an operating system with time slices and futexes. Time is virtual; the same seed gives the
//! same result to the byte, in any environment.
//!
//! | module | what is in it |
//! |---|---|
//! | [`machine`] | what the simulator has to know about a machine: numbers, in cycles |
//! | [`model`] | files of such numbers, in which each says where it comes from |
//! | [`Simulation`] | a run of a program on a machine, and its [`Report`] |
//! | [`thread`] | threads of the simulated program |
//! | [`explore`] | the same program under many schedules, to find mistakes |
//! | [`backend`] | what the program's facade for atomics, clocks and waiting is built on |
//!
//! # A first simulation
//!
//! Two threads take turns on one line; on two sockets that takes longer than on one.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//! use manycore_sim::{Machine, Placement, Simulation, backend, thread};
//!
//! // An atomic as a program's facade would have it.
//! struct Turn(AtomicU32);
//! impl Turn {
//!     fn load(&self) -> u32 {
//!         backend::load((&raw const self.0).addr());
//!         self.0.load(Relaxed)
//!     }
//!     fn store(&self, value: u32) {
//!         backend::store((&raw const self.0).addr());
//!         self.0.store(value, Relaxed)
//!     }
//! }
//!
//! fn ping_pong(cpus: [u32; 2]) -> u64 {
//!     let on = Placement::Cpus(cpus.to_vec());
//!     let report = Simulation::new(&Machine::example()).placement(on).run(|| {
//!         let turn = Box::new(Turn(AtomicU32::new(0)));
//!         thread::parallel(2, |me| {
//!             for _ in 0..100 {
//!                 while turn.load() != me {
//!                     backend::spin_loop();
//!                 }
//!                 turn.store(1 - me);
//!             }
//!         });
//!     });
//!     report.unwrap().cycles
//! }
//!
//! assert!(ping_pong([0, 4]) > 2 * ping_pong([0, 1]));
//! ```
//!
//! # What it does not model
//!
//! Memory order: accesses take effect one after the other, so a missing ordering does no harm here
//! (a model checker finds those). Out-of-order execution: an access ends before the next begins,
//! except for stores, which a buffer hides. Work that is no access through the facade is free,
//! unless the program declares its cost ([`thread::compute`]).

mod arena;
pub mod backend;
mod coherence;
mod engine;
pub mod explore;
mod footprint;
pub mod machine;
pub mod model;
mod simulation;
pub mod thread;

pub use coherence::{MemoryPolicy, Messages};
pub use engine::{Blocked, Breakdown, Cause, CpuTime, Failure, Stall};
pub use footprint::Footprint;
pub use machine::Machine;
pub use model::Model;
pub use simulation::{Placement, Report, Simulation, ThreadReport};

//! Histories of threads' simultaneous operations, and a check whether they are possible.
//!
//! | module | what is in it |
//! |---|---|
//! | [`history`] | recording of calls: thread, operation, times and result |
//! | [`specification`] | what a set, a map, a stack and a queue do when used by one thread |
//! | [`linearizable`] | whether some order of a history makes each operation right |
//! | [`taken_back`] | what a thread pushes and takes back, which no other thread sees |
//! | [`snapshot`] | whether transactions saw snapshots; what a crash has left of them |
//! | [`run`] | random operations on any collection, natively and under explored schedules |
//!
//! # A first check
//!
//! ```
//! use std::collections::BTreeSet;
//! use std::sync::Mutex;
//!
//! use manycore_history::run::{self, Mix, Native};
//! use manycore_traits::{ConcurrentSet, SetHandle};
//!
//! struct Locked(Mutex<BTreeSet<u64>>);
//!
//! impl ConcurrentSet<u64> for Locked {
//!     type Handle<'a> = &'a Self;
//!
//!     fn handle(&self) -> &Self {
//!         self
//!     }
//! }
//!
//! impl SetHandle<u64> for &Locked {
//!     fn contains(&mut self, key: &u64) -> bool {
//!         self.0.lock().unwrap().contains(key)
//!     }
//!     fn insert(&mut self, key: u64) -> bool {
//!         self.0.lock().unwrap().insert(key)
//!     }
//!     fn remove(&mut self, key: &u64) -> bool {
//!         self.0.lock().unwrap().remove(key)
//!     }
//! }
//!
//! run::check_set(Native, &Mix::native(4), &Locked(Mutex::default()));
//! ```
//!
//! Under explored schedules the line is the same, with `Explored` and a smaller mix, inside of
//! [`Exploration::check`](manycore_sim::explore::Exploration::check).

pub mod history;
pub mod linearizable;
pub mod run;
pub mod snapshot;
pub mod specification;
pub mod taken_back;

//! The interfaces of manycore's algorithms.
//!
//! A benchmark, a test or the preload library is written once, against these traits, and then run
//! on the native build and on the simulated build of the same algorithms. That is why nothing here
//! names an atomic, a clock or a thread: those belong to the build, not to the interface.
//!
//! ```
//! use manycore_traits::RawLock;
//!
//! /// Works for every lock, wherever it was compiled.
//! fn critical<L: RawLock>(lock: &L, section: impl FnOnce()) {
//!     let mut node = L::Node::default();
//!     // SAFETY: the node outlives the acquisition and is not moved before `unlock`.
//!     unsafe {
//!         lock.lock(&mut node);
//!         section();
//!         lock.unlock(&mut node);
//!     }
//! }
//! ```
#![no_std]

mod collection;
mod lock;
mod reverse_map;
mod rw_lock;
mod session;

pub use collection::{ConcurrentMap, ConcurrentSet, MapHandle, SetHandle};
pub use lock::{LockInfo, Order, RawLock};
pub use reverse_map::{Interval, ReverseMap};
pub use rw_lock::RawRwLock;
pub use session::{Conflict, Link, RawSession, Sessions, View};

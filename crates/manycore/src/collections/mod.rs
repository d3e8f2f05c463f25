//! Sets and maps that many threads use at once: a folder per structure, a file per mechanism.
//!
//! All of them implement [`ConcurrentSet`](crate::ConcurrentSet),
//! [`ConcurrentMap`](crate::ConcurrentMap) or both; a thread uses them through a handle of its own.
//! A set is a map to nothing.
//!
//! # What they call
//!
//! `Ord`, `Eq`, `Hash` and `Clone` of keys and values are called in the middle of an operation,
//! also under a lock. If they use the same collection, the thread may deadlock with itself. If they
//! panic, or contradict each other, it is undefined whether the operation takes effect and whether
//! keys are found; but no freed memory is touched, and nothing is dropped twice. Destructors run
//! when no lock is held, and may use the collection.
//!
//! | | |
//! |---|---|
//! | [`list`] | a sorted list |
//! | [`hash`] | a hash table of chains |
//! | [`tree`] | a search tree |
//! | [`space`] | maps that snapshots and transactions see together |
//! | [`bytes`] | a map of byte strings, with locked records, transactions and cursors |
//! | [`stack`] | a stack |
//! | [`queue`] | a queue out of which everything is taken at once |
//! | [`interval`] | trees of intervals, which are updated often and read seldom |
//! | [`Locked`], [`Combined`] | any of these under a lock, or by flat combining |
//!
//! ```
//! use manycore::collections::list::LockedList;
//! use manycore::lock::Adaptive;
//! use manycore::{ConcurrentSet, SetHandle};
//!
//! let primes = LockedList::<u32, (), Adaptive>::default();
//! std::thread::scope(|s| {
//!     s.spawn(|| ConcurrentSet::handle(&primes).insert(2));
//!     s.spawn(|| ConcurrentSet::handle(&primes).insert(3));
//! });
//! assert!(SetHandle::contains(&mut ConcurrentSet::handle(&primes), &3));
//! ```

#[cfg(not(loom))]
pub mod bytes;
mod combined;
pub mod hash;
mod hashing;
pub mod interval;
pub mod list;
mod locked;
mod mark;
pub mod queue;
mod rcu;
mod registry;
mod sequential;
mod set_by_map;
pub mod space;
pub mod stack;
pub mod tree;
pub mod versioned;

pub use combined::Combined;
pub use hash::{HashMap, PlainHashMap};
pub use locked::Locked;
pub use rcu::{ByHash, OneChain, Partition, RcuChains, RcuHandle};
pub use registry::Sizes;
pub use sequential::SequentialMap;

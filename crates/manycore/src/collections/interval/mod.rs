//! Trees of intervals that many threads update and few read: the reverse maps of an operating
//! system, which find the mappings of a page.
//!
//! | | |
//! |---|---|
//! | [`IntervalTree`] | a tree for one thread, of entries that belong to the caller |
//! | [`LockedTrees`] | `lock:NAME`: each tree under a lock |
//! | [`CombinedTrees`] | `flat-combining`: updates go to the thread that has the tree |
//! | [`DeferredTrees`] | `ldu`, `ldu-per-core`: a queue for each tree, or tables of each core |
//! | [eager below 0](DeferredTrees::eager_below) | `ldu-logged`, `ldu-per-core-logged`: log all |
//! | [`DeferredForest`] | `ldu-forest`: a queue for each core; one lock for all trees |
//! | [`SettledTrees`] | `ldu-settled`, `ldu-settled-per-cpu`, `ldu-combined`: wait for walks |
//! | [`LoggedTrees`] | `oplog`: operations are logged by each core with the time |
//! | [`HarrisLists`] | `harris`: no trees, but lists without locks, in no order |
//!
//! All but the first implement [`ReverseMap`](crate::ReverseMap):
//!
//! ```
//! use manycore::collections::interval::DeferredTrees;
//! use manycore::ldu::Global;
//! use manycore::lock::Adaptive;
//! use manycore::{Interval, ReverseMap};
//!
//! let files = DeferredTrees::<Global, Adaptive>::new(1, Global::new);
//! let parent = files.insert(files.interval(0, Interval { first: 0, order: 0, last: 9 }));
//! std::thread::scope(|s| {
//!     s.spawn(|| drop(files.insert(files.interval(0, Interval { first: 0, order: 1, last: 9 }))));
//! });
//! let mut mapped = 0;
//! files.overlaps(0, 5, 5, &mut |_| mapped += 1);
//! assert_eq!(mapped, 1);
//! # drop(parent);
//! ```

mod deferred;
mod exclusive;
mod harris;
mod logged;
mod registry;
mod settled;
mod tree;

pub use deferred::{DeferredForest, DeferredTrees, Forest, Member, Single, TabledTrees, tabled};
pub use exclusive::{
    AbsentEntry, CombinedTrees, Exclusive, ExclusiveTrees, LockedTrees, PresentEntry,
};
pub use harris::{AbsentLinked, HarrisLists, PresentLinked};
pub use logged::{AbsentLogged, LoggedTrees, PresentLogged};
pub use settled::{AbsentSettled, PresentSettled, SettledTrees};
pub use tree::{Entry, IntervalTree};

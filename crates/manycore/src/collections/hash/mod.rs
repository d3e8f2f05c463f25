//! A hash table of chains: each bucket is a [sorted list](super::list).
//!
//! The number of buckets is fixed when the table is made: choose a quarter to a tenth of the keys
//! that are expected. Only
//! [`MvrluGrowingTable`] has more buckets when there are more keys.

mod chained;
mod growing;
mod locked;
pub mod map;
mod mvrlu;
pub mod plain;
mod rcu;
mod rlu;
mod table;
mod walk;
mod word;

pub use chained::ChainedTable;
/// Hashers of [`HashMap`]: without a secret, the same in each run; and one keyed by a number that
/// is drawn when the process starts.
pub use foldhash::fast::{FixedState, RandomState};
pub use growing::{GrowingTable, MvrluGrowingTable, RluGrowingTable};
pub use locked::{CombinedTable, LockedTable};
pub use map::{HashMap, HashMapHandle, Iter, Pinned};
pub use mvrlu::{MvrluTable, VersionedTable};
pub use plain::{PlainHashMap, PlainHashMapHandle, PlainIter};
pub use rcu::RcuTable;
pub use rlu::RluTable;

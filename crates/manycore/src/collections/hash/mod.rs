//! Hash tables of chains: each bucket is a [sorted list](super::list).
//!
//! The number of buckets is fixed when a table is made: choose a quarter to a tenth of the expected
//! number of keys. Only [`MvrluGrowingTable`] and its variant for RLU get more buckets when they
//! have more keys.

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
/// Hashers for [`HashMap`]. `FixedState` has no secret, and gives the same hashes in each run.
/// `RandomState` is keyed by a number that is drawn when the process starts.
pub use foldhash::fast::{FixedState, RandomState};
pub use growing::{GrowingTable, MvrluGrowingTable, RluGrowingTable};
pub use locked::{CombinedTable, LockedTable};
pub use map::{HashMap, HashMapHandle, Iter, Pinned};
pub use mvrlu::{MvrluTable, VersionedTable};
pub use plain::{PlainHashMap, PlainHashMapHandle, PlainIter};
pub use rcu::RcuTable;
pub use rlu::RluTable;

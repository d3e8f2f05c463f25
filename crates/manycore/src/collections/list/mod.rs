//! A sorted list: every operation walks from the front to the position of its key.
//!
//! A list is the worst structure for many keys, and the one in which mechanisms differ most: an
//! operation reads hundreds of nodes to update one.

mod harris;
mod lazy;
mod links;
mod locked;
mod mvrlu;
mod rcu;
mod rlu;
mod sorted;

pub use harris::{HarrisHandle, HarrisList};
pub use lazy::{LazyHandle, LazyList};
pub(super) use links::{Links, Node};
pub use locked::{CombinedList, LockedList};
pub use mvrlu::{MvrluList, VersionedList};
pub use rcu::RcuList;
pub use rlu::RluList;
pub use sorted::SortedList;

//! A sorted list: every operation walks from the front to the place of its key.
//!
//! The worst structure for many keys, and the one in which mechanisms differ most: an update of one node is a small part of an
//! operation that reads hundreds.

mod locked;
mod sorted;

pub use locked::{CombinedList, LockedList};
pub use sorted::SortedList;

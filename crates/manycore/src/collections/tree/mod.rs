//! A binary search tree, which is not balanced: for keys that come in random order.

mod locked;
mod search;

pub use locked::{CombinedTree, LockedTree};
pub use search::SearchTree;

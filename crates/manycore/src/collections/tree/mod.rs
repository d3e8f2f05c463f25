//! A binary search tree, which is not balanced: for keys that come in random order.

mod locked;
mod search;
mod versioned;

pub use locked::{CombinedTree, LockedTree};
pub use search::SearchTree;
pub use versioned::{MvrluTree, RluTree, VersionedTree};

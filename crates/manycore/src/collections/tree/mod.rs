//! A binary search tree, which is not balanced: for keys in random order.

mod locked;
mod rcu;
mod search;
mod versioned;

pub use locked::{CombinedTree, LockedTree};
pub use rcu::{RcuTree, RcuTreeHandle};
pub use search::SearchTree;
pub use versioned::{MvrluTree, RluTree, VersionedTree};

//! A search tree that one thread at a time uses.

use super::SearchTree;
use crate::collections::{Combined, Locked};

/// A search tree under a lock.
pub type LockedTree<K, V, L> = Locked<SearchTree<K, V>, L>;

/// A search tree by flat combining.
pub type CombinedTree<K, V> = Combined<SearchTree<K, V>>;

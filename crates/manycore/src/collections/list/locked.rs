//! A sorted list that one thread at a time uses.

use super::SortedList;
use crate::collections::{Combined, Locked};

/// A sorted list under a lock.
pub type LockedList<K, V, L> = Locked<SortedList<K, V>, L>;

/// A sorted list by flat combining.
pub type CombinedList<K, V> = Combined<SortedList<K, V>>;

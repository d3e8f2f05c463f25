//! A hash table over RLU.

use super::VersionedTable;
use crate::rlu::Domain;

/// A hash table over [RLU](crate::rlu): as [`MvrluTable`](super::MvrluTable), but that a thread
/// that changes it waits for those who read it.
pub type RluTable<K, V, D = Domain> = VersionedTable<K, V, D>;

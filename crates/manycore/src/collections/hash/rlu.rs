//! A hash table over RLU.

use super::VersionedTable;
use crate::rlu::Domain;

/// A hash table over [RLU](crate::rlu): as [`MvrluTable`](super::MvrluTable), except that writers
/// wait for readers.
pub type RluTable<K, V, D = Domain> = VersionedTable<K, V, D>;

//! A sorted list over RLU.

use super::VersionedList;
use crate::rlu::Domain;

/// A sorted list over [RLU](crate::rlu): as [`MvrluList`](super::MvrluList), except that writers
/// wait for readers.
pub type RluList<K, V, D = Domain> = VersionedList<K, V, D>;

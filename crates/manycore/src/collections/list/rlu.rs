//! A sorted list over RLU.

use super::VersionedList;
use crate::rlu::Domain;

/// A sorted list over [RLU](crate::rlu): as [`MvrluList`](super::MvrluList), but that a thread that
/// changes it waits for those who read it.
pub type RluList<K, V, D = Domain> = VersionedList<K, V, D>;

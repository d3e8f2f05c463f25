//! A sorted list over MV-RLU.

use crate::collections::versioned::{Chain, One, Versioned};
use crate::mvrlu::Domain;
use crate::session::Sessions;

/// A sorted list over a mechanism with sessions.
pub type VersionedList<K, V, M> = Versioned<K, V, M, One<Chain>>;

/// A sorted list over MV-RLU. Lookups never wait, and changes at different positions do not either.
/// Ranges and transactions see one moment.
///
/// ```
/// use manycore::collections::list::MvrluList;
/// use manycore::{ConcurrentMap, MapHandle};
///
/// let stock = MvrluList::<u32, u32>::default();
/// let mut handle = ConcurrentMap::handle(&stock);
/// handle.insert(3, 30);
/// handle.transact(|tx| {
///     let moved = tx.remove(&3)?;
///     tx.insert(4, moved.unwrap_or(0))
/// });
/// let mut found = Vec::new();
/// handle.snapshot(|now| now.range(2..=4, |key, value| found.push((*key, *value))));
/// assert_eq!(found, [(4, 30)]);
/// ```
pub type MvrluList<K, V, D = Domain> = VersionedList<K, V, D>;

impl<K: Copy, V: Copy, M: Sessions> VersionedList<K, V, M> {
    /// Creates an empty list, in a domain that contains nothing else.
    pub fn new(domain: M) -> Self {
        Self::with_one_part(domain)
    }
}

impl<K: Copy, V: Copy, M: Sessions + Default> Default for VersionedList<K, V, M> {
    fn default() -> Self {
        Self::new(M::default())
    }
}

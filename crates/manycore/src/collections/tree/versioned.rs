//! A search tree over MV-RLU and RLU.

use crate::collections::versioned::{One, Search, Versioned};
use crate::session::Sessions;
use crate::{mvrlu, rlu};

/// A search tree over a mechanism with sessions.
pub type VersionedTree<K, V, M> = Versioned<K, V, M, One<Search>>;

/// A search tree over [MV-RLU](crate::mvrlu). Lookups never wait, and changes at different
/// positions do not either. Ranges and transactions see one moment.
///
/// ```
/// use manycore::collections::tree::MvrluTree;
/// use manycore::{ConcurrentMap, MapHandle};
///
/// let squares = MvrluTree::<u32, u32>::default();
/// let mut handle = ConcurrentMap::handle(&squares);
/// [3, 1, 4, 2].map(|key| handle.insert(key, key * key));
/// let mut found = Vec::new();
/// handle.snapshot(|now| now.range(2..4, |key, square| found.push((*key, *square))));
/// assert_eq!(found, [(2, 4), (3, 9)]);
/// ```
pub type MvrluTree<K, V, D = mvrlu::Domain> = VersionedTree<K, V, D>;

/// A search tree over [RLU](crate::rlu): as [`MvrluTree`], except that writers wait for readers.
pub type RluTree<K, V, D = rlu::Domain> = VersionedTree<K, V, D>;

impl<K: Copy, V: Copy, M: Sessions> VersionedTree<K, V, M> {
    /// Creates an empty tree, in a domain that contains nothing else.
    pub fn new(domain: M) -> Self {
        Self::with_one_part(domain)
    }
}

impl<K: Copy, V: Copy, M: Sessions + Default> Default for VersionedTree<K, V, M> {
    fn default() -> Self {
        Self::new(M::default())
    }
}

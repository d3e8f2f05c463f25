//! A hash table over MV-RLU.

use crate::collections::versioned::{Hashed, Versioned};
use crate::mvrlu::Domain;
use crate::session::Sessions;

/// A hash table over a mechanism with sessions.
pub type VersionedTable<K, V, M> = Versioned<K, V, M, Hashed>;

/// A hash table over MV-RLU. Look-ups never wait, nor do changes of different buckets. Snapshots
/// and transactions see all buckets as of one moment.
pub type MvrluTable<K, V, D = Domain> = VersionedTable<K, V, D>;

impl<K: Copy, V: Copy, M: Sessions> VersionedTable<K, V, M> {
    /// Creates an empty table with this many buckets, in a domain that has nothing else.
    ///
    /// # Panics
    ///
    /// If `buckets` is 0.
    pub fn with_buckets(domain: M, buckets: usize) -> Self {
        Self::with_chains(domain, buckets)
    }
}

impl<K: Copy, V: Copy, M: Sessions + Default> VersionedTable<K, V, M> {
    /// Creates an empty table with this many buckets.
    ///
    /// # Panics
    ///
    /// If `buckets` is 0.
    #[must_use]
    pub fn new(buckets: usize) -> Self {
        Self::with_buckets(M::default(), buckets)
    }
}

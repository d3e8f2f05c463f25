//! A hash table that grows, over MV-RLU or RLU.

use crate::collections::versioned::{Growing, Versioned};
use crate::session::Sessions;
use crate::{mvrlu, rlu};

/// A hash table that grows, over a mechanism with sessions.
pub type GrowingTable<K, V, M> = Versioned<K, V, M, Growing>;

/// A hash table that grows with its keys, over [MV-RLU](crate::mvrlu). Look-ups never wait, even
/// while it grows. Snapshots and transactions see the whole table as of one moment.
/// `collections/versioned/growing/mod.rs` describes how it grows.
///
/// Keys with equal hashes share a bucket. Thousands of them make that bucket slow: it is not split
/// any more, but the rest of the table continues to grow.
///
/// ```
/// use manycore::collections::hash::MvrluGrowingTable;
/// use manycore::{ConcurrentMap, MapHandle};
///
/// let squares = MvrluGrowingTable::<u64, u64>::default();
/// let mut handle = ConcurrentMap::handle(&squares);
/// (0..1000).for_each(|n| drop(handle.insert(n, n * n)));
/// assert_eq!(handle.get(&30), Some(900));
/// let mut sum = 0;
/// handle.snapshot(|now| now.for_each(|n, _| sum += n));
/// assert_eq!(sum, 499_500);
/// ```
pub type MvrluGrowingTable<K, V, D = mvrlu::Domain> = GrowingTable<K, V, D>;

/// A hash table that grows with its keys, over [RLU](crate::rlu): as [`MvrluGrowingTable`], except
/// that writers wait for readers.
pub type RluGrowingTable<K, V, D = rlu::Domain> = GrowingTable<K, V, D>;

impl<K: Copy, V: Copy, M: Sessions> GrowingTable<K, V, M> {
    /// Creates an empty table with room for this many keys, in a domain that has nothing else.
    pub fn with_capacity(domain: M, keys: usize) -> Self {
        Self::with_room(domain, keys)
    }

    /// As [`with_capacity`](Self::with_capacity), but the table grows when it has more than this
    /// many keys, at least 1, for each bucket. By default that is half of a bucket's room.
    pub fn with_keys_per_bucket(domain: M, keys: usize, keys_per_bucket: usize) -> Self {
        Self::with_load(domain, keys, keys_per_bucket)
    }
}

impl<K: Copy, V: Copy, M: Sessions + Default> Default for GrowingTable<K, V, M> {
    /// Creates a table with one bucket.
    fn default() -> Self {
        Self::with_capacity(M::default(), 0)
    }
}

//! `rcu`: a hash table that is read without a lock, and written under a lock for each bucket.
//!
//! # Idea
//!
//! Each bucket is the chain of [`RcuList`](crate::collections::list::RcuList), with a lock of its
//! own. All share one domain, so that a reader enters one section, whatever the bucket.
//!
//! # Source
//!
//! As for the list; a lock for each bucket as in the hash tables of Linux.
//!
//! # Memory order
//!
//! As for the list. An operation concerns one bucket.
//!
//! # Cost
//!
//! A look-up writes only its thread's record, so readers of one hot key do not wait for each other.
//! With `adaptive` a bucket is 32 bytes, two to a line. The memory of nodes is as in the list, but
//! at least 32 bytes each.
//!
//! # When not to use it
//!
//! Where the number of keys is not known to a factor of some tens: the table does not grow,
//! as [`MvrluGrowingTable`](super::MvrluGrowingTable) does. For what concerns several keys at
//! once.

use crate::RawLock;
use crate::collections::rcu::{ByHash, RcuChains};
use crate::reclaim::{Config, Epoch};

/// A look-up reads only a few nodes. It loses their lines from its cache when other threads write
/// unrelated nodes on the same lines: with four nodes on a line two threads are 7 % slower at 20 %
/// updates than with two.
const NODE_BYTES_MIN: usize = 32;

/// A hash table that is read without a lock. `F` is how readers [report that they have
/// left](crate::reclaim::Mode).
pub type RcuTable<K, V, L, F = Epoch> = RcuChains<K, V, L, ByHash, F>;

impl<K, V, L: RawLock, F> RcuTable<K, V, L, F> {
    /// Makes a table with `buckets` buckets; removed entries wait in a domain with this
    /// configuration.
    ///
    /// # Panics
    ///
    /// If there are to be no buckets.
    #[must_use]
    pub fn new(buckets: usize, config: Config) -> Self {
        assert!(buckets > 0, "a table has at least one bucket");
        Self::with_chains(buckets, NODE_BYTES_MIN, config)
    }
}

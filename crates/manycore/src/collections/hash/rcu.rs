//! `rcu`: a hash table with a lock for each bucket. Writers take the lock, readers do not.
//!
//! # Idea
//!
//! Each bucket is the chain of [`RcuList`](crate::collections::list::RcuList), with a lock of its
//! own. All buckets share one domain, so a reader enters one section, whatever the bucket.
//!
//! # Source
//!
//! The list is that of [`RcuList`](crate::collections::list::RcuList). A lock for each bucket is as
//! in the hash tables of Linux.
//!
//! # Memory order
//!
//! As for the list. Each operation uses one bucket.
//!
//! # Cost
//!
//! A look-up writes only its thread's record, so readers of one hot key do not wait for each other.
//! With `adaptive` a bucket is 32 bytes, so two share a line. Nodes take the same memory as in the
//! list, but at least 32 bytes each.
//!
//! # When not to use it
//!
//! If the number of keys cannot be estimated within a factor of some tens: this table does not
//! grow, unlike [`MvrluGrowingTable`](super::MvrluGrowingTable). For operations on several keys at
//! once.

use crate::RawLock;
use crate::collections::rcu::{ByHash, RcuChains};
use crate::reclaim::{Config, Epoch};

/// A look-up reads only a few nodes. Its thread loses their cache lines when other threads write
/// unrelated nodes on the same lines. With four nodes on a line, two threads at 20 % updates are 7
/// % slower than with two nodes.
const NODE_BYTES_MIN: usize = 32;

/// A hash table whose readers take no lock. `F` is how readers [report quiescent
/// states](crate::reclaim::Mode).
pub type RcuTable<K, V, L, F = Epoch> = RcuChains<K, V, L, ByHash, F>;

impl<K, V, L: RawLock, F> RcuTable<K, V, L, F> {
    /// Creates a table with `buckets` buckets. Removed entries wait in a domain with this
    /// configuration.
    ///
    /// # Panics
    ///
    /// If `buckets` is 0.
    #[must_use]
    pub fn new(buckets: usize, config: Config) -> Self {
        assert!(buckets > 0, "a table has at least one bucket");
        Self::with_chains(buckets, NODE_BYTES_MIN, config)
    }
}

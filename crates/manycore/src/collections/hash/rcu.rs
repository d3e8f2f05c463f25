//! `rcu`: a hash table that is read without a lock, and written under a lock for each bucket.
//!
//! # Idea
//!
//! Each bucket is the chain of [`RcuList`](crate::collections::list::RcuList), with a lock of its own. All share one domain, so
//! that a reader enters one section, whatever the bucket.
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
//! A look-up writes nothing but its thread's record, so that readers of one hot key do not take turns. With `adaptive` a bucket
//! is 24 bytes.
//!
//! # When not to use it
//!
//! Where the number of keys is not known to a factor of some tens: the table does not grow. For what concerns several keys at
//! once.

use alloc::boxed::Box;
use core::fmt;
use core::hash::Hash;

use super::bucket_of;
use crate::collections::list::Chain;
use crate::reclaim::{self, Config, Domain};
use crate::{ConcurrentMap, ConcurrentSet, MapHandle, RawLock, SetHandle};

/// A hash table that is read without a lock.
pub struct RcuTable<K, V, L> {
    buckets: Box<[Bucket<K, V, L>]>,
    domain: Domain,
}

struct Bucket<K, V, L> {
    chain: Chain<K, V>,
    lock: L,
}

impl<K, V, L: RawLock> RcuTable<K, V, L> {
    /// With so many buckets; what is taken out waits in a domain like this.
    ///
    /// # Panics
    ///
    /// If there are to be no buckets.
    pub fn new(buckets: usize, config: Config) -> Self {
        assert!(buckets > 0, "a table has at least one bucket");
        let bucket = |_| Bucket { chain: Chain::new(), lock: L::new() };
        Self { buckets: (0..buckets).map(bucket).collect(), domain: Domain::new(config) }
    }
}

impl<K: Hash, V, L> RcuTable<K, V, L> {
    #[inline]
    fn bucket(&self, key: &K) -> &Bucket<K, V, L> {
        &self.buckets[bucket_of(key, self.buckets.len())]
    }
}

impl<K, V, L> RcuTable<K, V, L> {
    /// Where what was taken out waits until nobody can be on it.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl<K, V, L> fmt::Debug for RcuTable<K, V, L> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("RcuTable").field("domain", &self.domain).finish_non_exhaustive()
    }
}

/// A thread's access to an [`RcuTable`].
pub struct RcuTableHandle<'a, K, V, L> {
    table: &'a RcuTable<K, V, L>,
    handle: reclaim::Handle<'a>,
}

impl<K, V, L> fmt::Debug for RcuTableHandle<'_, K, V, L> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("RcuTableHandle").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl<K, V, L> ConcurrentMap<K, V> for RcuTable<K, V, L>
where
    K: Hash + Ord + Send + Sync,
    V: Clone + Send + Sync,
    L: RawLock,
{
    type Handle<'a>
        = RcuTableHandle<'a, K, V, L>
    where
        Self: 'a;

    fn handle(&self) -> RcuTableHandle<'_, K, V, L> {
        RcuTableHandle { table: self, handle: self.domain.register() }
    }
}

impl<K, V, L> MapHandle<K, V> for RcuTableHandle<'_, K, V, L>
where
    K: Hash + Ord + Send,
    V: Clone + Send,
    L: RawLock,
{
    fn get(&mut self, key: &K) -> Option<V> {
        self.table.bucket(key).chain.read(key, &self.handle.pin(), V::clone)
    }

    fn insert(&mut self, key: K, value: V) -> Option<V> {
        let bucket = self.table.bucket(&key);
        bucket.chain.insert(&bucket.lock, key, value, &self.handle.pin())
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        let bucket = self.table.bucket(key);
        bucket.chain.remove(&bucket.lock, key, &self.handle.pin())
    }
}

impl<K: Hash + Ord + Send + Sync, L: RawLock> ConcurrentSet<K> for RcuTable<K, (), L> {
    type Handle<'a>
        = RcuTableHandle<'a, K, (), L>
    where
        Self: 'a;

    fn handle(&self) -> RcuTableHandle<'_, K, (), L> {
        ConcurrentMap::handle(self)
    }
}

impl<K: Hash + Ord + Send, L: RawLock> SetHandle<K> for RcuTableHandle<'_, K, (), L> {
    fn contains(&mut self, key: &K) -> bool {
        self.get(key).is_some()
    }

    fn insert(&mut self, key: K) -> bool {
        let bucket = self.table.bucket(&key);
        bucket.chain.insert_new(&bucket.lock, key, (), &self.handle.pin())
    }

    fn remove(&mut self, key: &K) -> bool {
        MapHandle::remove(self, key).is_some()
    }
}

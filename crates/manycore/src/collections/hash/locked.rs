//! `lock:NAME`: a hash table with a lock for each bucket.
//!
//! # Idea
//!
//! Two operations meet only if their keys are in the same bucket. With many buckets that is rare,
//! and the remaining cost is that of an uncontended lock.
//!
//! # Source
//!
//! Folklore.
//!
//! # Memory order
//!
//! The order is that of the locks. An operation on one key takes one lock, so it takes effect while
//! it holds that lock.
//!
//! # Cost
//!
//! A lock for each bucket: with `adaptive`, 16 bytes next to the head of the list. Each operation
//! acquires a lock, also a look-up. That writes to the bucket's line, so readers of one hot key
//! wait for each other.
//!
//! # When not to use it
//!
//! Where many threads read the same few keys, and for operations on several keys at once.

use alloc::boxed::Box;
use core::hash::Hash;

use super::ChainedTable;
use crate::collections::hashing::bucket_of;
use crate::collections::list::{LockedList, SortedList};
use crate::collections::set_by_map::set_by_map;
use crate::collections::{Combined, Locked};
use crate::{ConcurrentMap, MapHandle, RawLock};

/// A hash table by flat combining, in one piece.
pub type CombinedTable<K, V> = Combined<ChainedTable<K, V>>;

/// A hash table with a lock for each bucket.
#[derive(Debug)]
pub struct LockedTable<K, V, L> {
    buckets: Box<[LockedList<K, V, L>]>,
}

impl<K, V, L: RawLock> LockedTable<K, V, L> {
    /// Creates a table with this many buckets.
    ///
    /// # Panics
    ///
    /// If `buckets` is 0.
    #[must_use]
    pub fn new(buckets: usize) -> Self {
        assert!(buckets > 0, "a table has at least one bucket");
        Self { buckets: (0..buckets).map(|_| Locked::new(SortedList::new())).collect() }
    }
}

impl<K: Hash, V, L> LockedTable<K, V, L> {
    fn bucket(&self, key: &K) -> &LockedList<K, V, L> {
        &self.buckets[bucket_of(key, self.buckets.len())]
    }
}

impl<K, V, L> ConcurrentMap<K, V> for LockedTable<K, V, L>
where
    K: Hash + Ord + Send,
    V: Clone + Send,
    L: RawLock,
{
    type Handle<'a>
        = &'a Self
    where
        Self: 'a;

    fn handle(&self) -> &Self {
        self
    }
}

impl<K: Hash + Ord, V: Clone, L: RawLock> MapHandle<K, V> for &LockedTable<K, V, L> {
    fn get(&mut self, key: &K) -> Option<V> {
        self.bucket(key).get(key)
    }

    fn insert(&mut self, key: K, value: V) -> Option<V> {
        MapHandle::insert(&mut self.bucket(&key), key, value)
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        MapHandle::remove(&mut self.bucket(key), key)
    }
}

set_by_map!(impl[K: Hash + Ord + Send, L: RawLock] LockedTable<K, (), L>);

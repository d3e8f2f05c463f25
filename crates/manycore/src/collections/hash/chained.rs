//! A hash table for one thread.

use alloc::boxed::Box;
use core::hash::Hash;

use crate::collections::SequentialMap;
use crate::collections::hashing::bucket_of;
use crate::collections::list::SortedList;

/// A hash table of chains.
#[derive(Debug)]
pub struct ChainedTable<K, V> {
    buckets: Box<[SortedList<K, V>]>,
}

impl<K, V> ChainedTable<K, V> {
    /// Creates a table with this many buckets.
    ///
    /// # Panics
    ///
    /// If `buckets` is 0.
    #[must_use]
    pub fn new(buckets: usize) -> Self {
        assert!(buckets > 0, "a table has at least one bucket");
        Self { buckets: (0..buckets).map(|_| SortedList::new()).collect() }
    }
}

impl<K: Hash + Ord, V: Clone> SequentialMap<K, V> for ChainedTable<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.buckets[bucket_of(key, self.buckets.len())].get(key)
    }

    fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.buckets[bucket_of(&key, self.buckets.len())].insert(key, value)
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        self.buckets[bucket_of(key, self.buckets.len())].remove(key)
    }
}

//! All entries of a map.

use alloc::vec::Vec;
use core::fmt;

use super::super::table::Table;
use super::super::walk::Walk;
use super::{Entries, MapEntry};

/// An iterator over the keys and values of a map, in no order. It returns a key that is in the map
/// all the time exactly once, and a key that is inserted or removed meanwhile at most once.
pub struct Iter<'p, K, V> {
    buckets: Walk<'p, Entries<K, V>>,
    /// The remaining entries of the present bucket.
    entries: Vec<*mut MapEntry<K, V>>,
}

impl<'p, K, V> Iter<'p, K, V> {
    /// Creates an iterator. The table was found in a section that lasts as long as `'p`.
    pub(super) fn new(table: &'p Table<Entries<K, V>>) -> Self {
        Self { buckets: Walk::new(table), entries: Vec::new() }
    }

    fn entry(&mut self) -> Option<&'p MapEntry<K, V>> {
        loop {
            if let Some(entry) = self.entries.pop() {
                // SAFETY: a slot led to the entry in the section, which lasts as long as `'p`.
                return Some(unsafe { &*entry });
            }
            self.buckets.step(|buckets, at| {
                let bucket = buckets.bucket(at);
                let word = bucket.read();
                let push = |_, entry| self.entries.push(entry);
                word.map(|word| bucket.for_each(word, push)).is_some()
            })?;
        }
    }

    /// The remaining entries.
    pub(super) fn entries(mut self) -> impl Iterator<Item = &'p MapEntry<K, V>> {
        core::iter::from_fn(move || self.entry())
    }
}

impl<'p, K, V> Iterator for Iter<'p, K, V> {
    type Item = (&'p K, &'p V);

    fn next(&mut self) -> Option<Self::Item> {
        self.entry().map(|MapEntry { key, value }| (key, value))
    }
}

impl<K, V> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Iter").field("bucket", &self.buckets.visited()).finish_non_exhaustive()
    }
}

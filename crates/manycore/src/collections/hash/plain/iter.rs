//! All entries of a map of plain data.

use alloc::vec::Vec;
use core::fmt;

use bytemuck::NoUninit;

use super::super::table::Tables;
use super::super::walk::Walk;
use super::bucket::Inline;
use crate::reclaim::Guard;

/// An iterator over the keys and values of a map, in no order. It copies one bucket at a time. It
/// returns a key that is in the map all the time exactly once, and a key that is inserted or
/// removed meanwhile at most once.
pub struct PlainIter<'p, K: NoUninit, V: NoUninit> {
    buckets: Walk<'p, Inline<K, V>>,
    /// The remaining entries of the present bucket.
    entries: Vec<(K, V)>,
    /// Keeps the tables allocated.
    _guard: Guard<'p>,
}

impl<'p, K: NoUninit, V: NoUninit> PlainIter<'p, K, V> {
    /// Creates an iterator over all entries of these tables.
    pub(super) fn new(tables: &'p Tables<Inline<K, V>>, guard: Guard<'p>) -> Self {
        let table: *const _ = tables.first(&guard);
        // SAFETY: a table that is found in a section lives as long as the section. The section
        // lasts as long as the iterator, which has the guard and returns no references.
        let table = unsafe { &*table };
        Self { buckets: Walk::new(table), entries: Vec::new(), _guard: guard }
    }
}

impl<K: NoUninit, V: NoUninit> Iterator for PlainIter<'_, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        loop {
            if let Some(entry) = self.entries.pop() {
                return Some(entry);
            }
            let entries = &mut self.entries;
            self.buckets.step(|buckets, at| buckets.bucket(at).copy_to(entries))?;
        }
    }
}

impl<K: NoUninit, V: NoUninit> fmt::Debug for PlainIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("PlainIter").field("bucket", &self.buckets.visited()).finish_non_exhaustive()
    }
}

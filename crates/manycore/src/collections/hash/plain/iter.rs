//! All entries of a map of plain data.

use alloc::vec::Vec;
use core::fmt;

use bytemuck::NoUninit;

use super::super::table::Tables;
use super::super::walk::Walk;
use super::bucket::Inline;
use crate::reclaim::Guard;

/// The keys and values of a map, in no order, copied a bucket at a time. A key that is there all
/// the time comes once; one that comes or goes meanwhile comes once or not at all.
pub struct PlainIter<'p, K: NoUninit, V: NoUninit> {
    buckets: Walk<'p, Inline<K, V>>,
    /// What is left of the bucket at hand.
    entries: Vec<(K, V)>,
    /// While it is there the tables are.
    _guard: Guard<'p>,
}

impl<'p, K: NoUninit, V: NoUninit> PlainIter<'p, K, V> {
    /// All entries of these tables.
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

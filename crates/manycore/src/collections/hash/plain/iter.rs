//! All entries of a map of plain data.

use alloc::vec::Vec;
use core::fmt;

use bytemuck::NoUninit;

use super::super::table::{Buckets, Table, Tables};
use super::bucket::Inline;
use crate::reclaim::Guard;

/// The keys and values of a map, in no order, copied a bucket at a time. A key that is there all
/// the time comes once; one that comes or goes meanwhile comes once or not at all.
pub struct PlainIter<'p, K: NoUninit, V: NoUninit> {
    /// Buckets that are still to be visited: a table, and which of its buckets.
    buckets: Vec<(&'p Table<Inline<K, V>>, usize)>,
    /// The first table, and its next bucket.
    table: &'p Table<Inline<K, V>>,
    next: usize,
    /// What is left of the bucket at hand.
    entries: Vec<(K, V)>,
    /// While it is there the tables are.
    _guard: Guard<'p>,
}

impl<'p, K: NoUninit, V: NoUninit> PlainIter<'p, K, V> {
    /// All entries of these tables.
    pub(super) fn new(tables: &'p Tables<Inline<K, V>>, guard: Guard<'p>) -> Self {
        let table: *const _ = tables.first(&guard);
        // SAFETY: a table that is found in a section is there as long as the section, and that is
        // as long as the iterator, which has the guard and returns no reference.
        let table = unsafe { &*table };
        Self { buckets: Vec::new(), table, next: 0, entries: Vec::new(), _guard: guard }
    }

    /// The next bucket; none if there is none.
    fn bucket(&mut self) -> Option<(&'p Table<Inline<K, V>>, usize)> {
        self.buckets.pop().or_else(|| {
            let at = self.next;
            self.next += 1;
            (at < self.table.buckets().count()).then_some((self.table, at))
        })
    }
}

impl<K: NoUninit, V: NoUninit> Iterator for PlainIter<'_, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        loop {
            if let Some(entry) = self.entries.pop() {
                return Some(entry);
            }
            let (table, at) = self.bucket()?;
            let entries = &mut self.entries;
            let is_here = table.buckets().bucket(at).all(|entry| match entry {
                Some(entry) => entries.push(entry),
                None => entries.clear(),
            });
            if is_here {
                continue;
            }
            match table.next() {
                // What was in it is in two buckets of the next table.
                Some(next) => {
                    self.buckets.extend([(next, at), (next, at + table.buckets().count())])
                }
                // A bucket was moved, so there is a next table.
                None => self.buckets.push((table, at)),
            }
        }
    }
}

impl<K: NoUninit, V: NoUninit> fmt::Debug for PlainIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("PlainIter").field("bucket", &self.next).finish_non_exhaustive()
    }
}

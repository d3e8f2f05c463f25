//! A walk through all buckets, while other threads move entries into the next table.

use alloc::vec::Vec;

use super::table::{Buckets, Table};

/// All buckets of a map: those of its first table and, in place of each moved bucket, the two
/// buckets of the next table that have its entries.
pub(super) struct Walk<'p, B: Buckets> {
    /// Buckets of later tables that the walk still has to visit: the table, and the bucket's
    /// number.
    moved: Vec<(&'p Table<B>, usize)>,
    table: &'p Table<B>,
    next: usize,
}

impl<'p, B: Buckets> Walk<'p, B> {
    /// Begins with a table that was found in a section, which lasts as long as `'p`.
    pub fn new(table: &'p Table<B>) -> Self {
        Self { moved: Vec::new(), table, next: 0 }
    }

    /// The number of buckets of the first table that were visited.
    pub fn visited(&self) -> usize {
        self.next
    }

    /// Visits the next bucket; `None` after the last one. `show` returns false if the bucket's
    /// entries are in the next table.
    pub fn step(&mut self, show: impl FnOnce(&'p B, usize) -> bool) -> Option<()> {
        let (table, at) = self.moved.pop().or_else(|| self.in_first())?;
        if !show(table.buckets(), at) {
            match table.next() {
                Some(next) => self.moved.extend([(next, at), (next, at + table.buckets().count())]),
                // The bucket was moved, so a next table exists; this thread now learns of it.
                None => self.moved.push((table, at)),
            }
        }
        Some(())
    }

    fn in_first(&mut self) -> Option<(&'p Table<B>, usize)> {
        let at = self.next;
        self.next += 1;
        (at < self.table.buckets().count()).then_some((self.table, at))
    }
}

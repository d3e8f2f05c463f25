//! All entries of a map.

use alloc::vec::Vec;
use core::fmt;

use super::super::table::{Buckets, Table};
use super::{Entries, Entry};

/// The keys and values of a map, in no order. A key that is there all the time comes once; one that
/// comes or goes meanwhile comes once or not at all.
pub struct Iter<'p, K, V> {
    /// Buckets that are still to be visited: a table, and which of its buckets.
    buckets: Vec<(&'p Table<Entries<K, V>>, usize)>,
    /// The first table, and its next bucket.
    table: &'p Table<Entries<K, V>>,
    next: usize,
    /// What is left of the bucket at hand.
    entries: Vec<*mut Entry<K, V>>,
}

impl<'p, K, V> Iter<'p, K, V> {
    /// The table was found in a section that lasts as long as `'p`.
    pub(super) fn new(table: &'p Table<Entries<K, V>>) -> Self {
        Self { buckets: Vec::new(), table, next: 0, entries: Vec::new() }
    }

    /// The next bucket; none if there is none.
    fn bucket(&mut self) -> Option<(&'p Table<Entries<K, V>>, usize)> {
        self.buckets.pop().or_else(|| {
            let at = self.next;
            self.next += 1;
            (at < self.table.buckets().count()).then_some((self.table, at))
        })
    }
}

impl<'p, K, V> Iter<'p, K, V> {
    fn entry(&mut self) -> Option<&'p Entry<K, V>> {
        loop {
            if let Some(entry) = self.entries.pop() {
                // SAFETY: a slot led to it in the section, which lasts as long as `'p`.
                return Some(unsafe { &*entry });
            }
            let (table, at) = self.bucket()?;
            let bucket = table.buckets().bucket(at);
            match (bucket.read(), table.next()) {
                (Some(word), _) => bucket.for_each(word, |_, entry| self.entries.push(entry)),
                // What was in it is in two buckets of the next table.
                (None, Some(next)) => {
                    self.buckets.extend([(next, at), (next, at + table.buckets().count())]);
                }
                // A bucket was moved, so there is a next table.
                (None, None) => self.buckets.push((table, at)),
            }
        }
    }

    /// The entries.
    pub(super) fn entries(mut self) -> impl Iterator<Item = &'p Entry<K, V>> {
        core::iter::from_fn(move || self.entry())
    }
}

impl<'p, K, V> Iterator for Iter<'p, K, V> {
    type Item = (&'p K, &'p V);

    fn next(&mut self) -> Option<Self::Item> {
        self.entry().map(|Entry { key, value }| (key, value))
    }
}

impl<K, V> fmt::Debug for Iter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Iter").field("bucket", &self.next).finish_non_exhaustive()
    }
}

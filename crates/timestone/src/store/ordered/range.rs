//! The keys of a range.

use std::marker::PhantomData;
use std::ops::Bound;

use super::node::{INNER, Layout};
use crate::Persist;
use crate::store::transaction::Session;

/// The keys of a range of an [`OrderedMap`](super::OrderedMap) with their values, in their order.
#[must_use = "an iterator does nothing unless it is asked"]
pub struct Range<'s, S, K, V> {
    session: &'s S,
    /// Nodes that are still to be visited. The next one is the last of the list.
    next: Vec<u64>,
    /// The leaf that is visited, and its next key.
    leaf: &'s [u64],
    index: usize,
    start: Bound<K>,
    end: Bound<K>,
    types: PhantomData<fn(K) -> V>,
}

impl<'s, S: Session, K: Persist + Ord, V: Persist> Range<'s, S, K, V> {
    pub(super) fn new(session: &'s S, top: u64, (start, end): (Bound<K>, Bound<K>)) -> Self {
        let (next, leaf) = (vec![top], &[0][..]);
        Self { session, next, leaf, index: 0, start, end, types: PhantomData }
    }

    /// Moves to the next leaf; `None` if there is no other leaf in the range.
    fn next_leaf(&mut self) -> Option<()> {
        let mut word = self.next.pop()?;
        while word & INNER != 0 {
            let words = self.session.object(word & !INNER, Layout::<K, V>::INNER_WORDS);
            let children = self.children(words);
            self.next.extend(children.rev().map(|child| Layout::<K, V>::child(words, child)));
            word = self.next.pop()?;
        }
        self.session.note(word, Layout::<K, V>::LEAF_WORDS);
        self.leaf = self.session.object(word, Layout::<K, V>::LEAF_WORDS);
        self.index = match &self.start {
            Bound::Unbounded => 0,
            Bound::Included(key) => Layout::<K, V>::find(self.leaf, key).unwrap_or_else(|at| at),
            Bound::Excluded(key) => {
                Layout::<K, V>::find(self.leaf, key).map_or_else(|at| at, |at| at + 1)
            }
        };
        Some(())
    }

    /// The children of an inner node that may have keys of the range: at least one.
    fn children(&self, words: &[u64]) -> std::ops::RangeInclusive<usize> {
        let of = |bound: &Bound<K>, unbounded: usize| match bound {
            Bound::Unbounded => unbounded,
            Bound::Included(key) | Bound::Excluded(key) => Layout::<K, V>::child_of(words, key),
        };
        let (first, last) = (of(&self.start, 0), of(&self.end, Layout::<K, V>::len(words)));
        first..=last.max(first)
    }

    fn is_before_end(&self, key: &K) -> bool {
        match &self.end {
            Bound::Unbounded => true,
            Bound::Included(end) => key <= end,
            Bound::Excluded(end) => key < end,
        }
    }
}

impl<S: Session, K: Persist + Ord, V: Persist> Iterator for Range<'_, S, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        while self.index >= Layout::<K, V>::len(self.leaf) {
            self.next_leaf()?;
        }
        let key = Layout::<K, V>::key(self.leaf, self.index);
        if !self.is_before_end(&key) {
            self.next.clear();
            self.leaf = &[0];
            return None;
        }
        let value = Layout::<K, V>::value(self.leaf, self.index);
        self.index += 1;
        Some((key, value))
    }
}

impl<S, K, V> std::fmt::Debug for Range<'_, S, K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Range").finish_non_exhaustive()
    }
}

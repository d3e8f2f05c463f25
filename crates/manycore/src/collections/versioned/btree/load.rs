//! Builds a tree from sorted entries, from the leaves upwards, in one session.

use alloc::vec::Vec;

use super::grow::untyped;
use super::node::{Anchor, Inner, Leaf};
use super::{BPlus, typed};
use crate::collections::versioned::word::{Datum, Word};
use crate::session::{Conflict, Link, RawSession};

/// A node, and the key at which it begins; the first node of a level has no such key.
type Begins<K> = (Link<()>, Option<Word<K>>);

impl<const LEAF: usize, const INNER: usize> BPlus<LEAF, INNER> {
    /// Fills a tree that is empty, with nodes that are full.
    ///
    /// # Panics
    ///
    /// If a key is not larger than the one before.
    ///
    /// # Safety
    ///
    /// In a session of the domain to which the tree belongs; no other thread has the tree yet.
    pub unsafe fn load<K: Datum + Ord + Clone, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        session: &mut S,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(), Conflict> {
        // SAFETY: the session is open (contract of this function). If it commits, each word is in
        // one node, and all nodes but the old root, which is freed, can be reached from the anchor.
        unsafe {
            let leaves = Self::leaves(session, entries);
            if leaves.is_empty() {
                return Ok(());
            }
            let (mut level, mut height) = (Self::lowest_level(session, leaves), 0);
            while level.len() > 1 {
                level = Self::level_above(session, &level);
                height += 1;
            }
            let begin = &mut *session.try_lock(anchor)?;
            session.free(typed::<Leaf<K, V, LEAF>>(begin.root))?;
            *begin = Anchor { root: level[0].0, height };
            Ok(())
        }
    }

    /// Leaves that do not lead to each other yet.
    ///
    /// # Safety
    ///
    /// As of [`load`](Self::load).
    unsafe fn leaves<K: Datum + Ord, V: Datum, S: RawSession>(
        session: &mut S,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Vec<Leaf<K, V, LEAF>> {
        let mut leaves = Vec::<Leaf<K, V, LEAF>>::new();
        for (key, value) in entries {
            if let Some(last) = leaves.last().and_then(|leaf| leaf.keys().last()) {
                // SAFETY: the key was made above, and is there until the session's end.
                let is_after = unsafe { last.get() } < &key;
                assert!(is_after, "a key that is not larger than the one before");
            }
            // SAFETY: the session is open, and has both in a leaf if it commits (contract of this
            // function).
            let (key, value) =
                unsafe { (Word::claimed(session, key), Word::claimed(session, value)) };
            if leaves.last().is_none_or(|leaf| leaf.len() == LEAF) {
                leaves.push(Leaf::new());
            }
            let at = leaves.len() - 1;
            let leaf = &mut leaves[at];
            leaf.insert(leaf.len(), key, value);
        }
        leaves
    }

    /// The leaves as objects, in their order.
    ///
    /// # Safety
    ///
    /// As of [`load`](Self::load).
    unsafe fn lowest_level<K: Datum + Clone, V: Datum, S: RawSession>(
        session: &mut S,
        mut leaves: Vec<Leaf<K, V, LEAF>>,
    ) -> Vec<Begins<K>> {
        let mut level = Vec::with_capacity(leaves.len());
        let (mut high, mut next) = (Word::NONE, Link::NULL);
        while let Some(mut leaf) = leaves.pop() {
            (leaf.end.high, leaf.end.next) = (high, next);
            // SAFETY: the key is valid until the session's end; if the session commits, the clone
            // is the border between two leaves (contract of this function).
            let border = (!leaves.is_empty())
                .then(|| unsafe { Word::claimed(session, leaf.keys()[0].get().clone()) });
            // SAFETY: the session is open (contract of this function).
            next = unsafe { session.alloc(leaf) };
            level.push((untyped(next), border));
            high = border.unwrap_or(Word::NONE);
        }
        level.reverse();
        level
    }

    /// The inner nodes that lead to a level, in their order.
    ///
    /// # Safety
    ///
    /// As of [`load`](Self::load).
    unsafe fn level_above<K: Datum, S: RawSession>(
        session: &mut S,
        below: &[Begins<K>],
    ) -> Vec<Begins<K>> {
        let mut level = Vec::new();
        let (mut high, mut next) = (Word::NONE, Link::NULL);
        for children in below.chunks(INNER + 1).rev() {
            let mut node = Inner::<K, INNER>::new(children[0].0);
            for &(child, border) in &children[1..] {
                let border = border.expect("only the first of a level has none");
                node.insert(node.len(), border, child);
            }
            (node.end.high, node.end.next) = (high, next);
            // SAFETY: the session is open (contract of this function).
            next = unsafe { session.alloc(node) };
            level.push((untyped(next), children[0].1));
            high = children[0].1.unwrap_or(Word::NONE);
        }
        level.reverse();
        level
    }
}

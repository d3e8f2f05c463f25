//! Builds a tree from sorted entries in one session. A node is created when the last key below it
//! is known.

use alloc::vec::Vec;

use super::Art;
use super::key::ArtKey;
use super::node::{Anchor, Below, Leaf, Path};
use super::walk::common;
use crate::collections::versioned::word::{Datum, Word};
use crate::session::{Conflict, Link, RawSession};

/// A node that may get more keys.
struct Open {
    depth: usize,
    end: Below,
    entries: Vec<(u8, Below)>,
}

impl Open {
    /// Adds what is below this node on the way to a key.
    fn add(&mut self, key: &[u8], below: Below) {
        match key.get(self.depth) {
            None => self.end = below,
            Some(&byte) => self.entries.push((byte, below)),
        }
    }
}

impl Art {
    /// Fills a tree that is empty.
    ///
    /// # Panics
    ///
    /// If a key is not larger than the one before.
    ///
    /// # Safety
    ///
    /// The caller is in a session of the domain to which the tree belongs. No other thread can find
    /// the tree yet.
    pub(in crate::collections) unsafe fn load<K: Datum + ArtKey, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        session: &mut S,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(), Conflict> {
        // The nodes above the last key, and the part of the lowest node that is on the path to it.
        let (mut open, mut last): (Vec<Open>, Option<(Vec<u8>, Below)>) = (Vec::new(), None);
        // SAFETY: the session is open (contract of this function). If it commits, each word is in
        // one leaf, and all nodes can be reached from the anchor.
        unsafe {
            for (key, value) in entries {
                let bytes = key.bytes().as_ref().to_vec();
                if let Some((before, below)) = last.take() {
                    assert!(before < bytes, "a key that is not larger than the one before");
                    let depth = common(&before, &bytes);
                    let below = Self::close(session, &mut open, &before, below, depth);
                    if open.last().is_none_or(|above| above.depth < depth) {
                        open.push(Open { depth, end: Below::NONE, entries: Vec::new() });
                    }
                    let above = open.last_mut().expect("one was just put in if there was none");
                    above.add(&before, below);
                }
                let (key, value) = (Word::claimed(session, key), Word::claimed(session, value));
                let leaf: Link<Leaf<K, V>> = session.alloc(Leaf { key, value });
                last = Some((bytes, leaf.into()));
            }
            let Some((last, below)) = last else { return Ok(()) };
            let lowest = Self::close(session, &mut open, &last, below, 0);
            let root = match open.pop() {
                None => lowest,
                Some(mut top) => {
                    top.add(&last, lowest);
                    Self::node_of(session, Path::of(&last, 0), top.end, &top.entries)
                }
            };
            (*session.try_lock(anchor)?).root = root;
        }
        Ok(())
    }

    /// Makes the nodes that are deeper, on the way to a key; returns the last of them.
    ///
    /// # Safety
    ///
    /// As of [`load`](Self::load).
    unsafe fn close<S: RawSession>(
        session: &mut S,
        open: &mut Vec<Open>,
        key: &[u8],
        mut below: Below,
        depth: usize,
    ) -> Below {
        while let Some(mut node) = open.pop_if(|node| node.depth > depth) {
            node.add(key, below);
            // SAFETY: the session is open, and has all these nodes in the tree if it commits
            // (contract of this function, that of `load`).
            below = unsafe {
                Self::node_of(session, Path::of(key, node.depth), node.end, &node.entries)
            };
        }
        below
    }
}

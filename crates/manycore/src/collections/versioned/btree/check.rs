//! Whether a tree is what the module's page says: for tests.

use alloc::vec::Vec;

use super::node::{Anchor, Inner, Leaf};
use super::{BPlus, typed};
use crate::collections::versioned::word::{Datum, Word};
use crate::session::{Link, RawSession};

/// Nodes of a level in order, and the keys at which all but the first begin.
struct Level<K> {
    nodes: Vec<Link<()>>,
    borders: Vec<Word<K>>,
}

fn ensure(is_so: bool, otherwise: &'static str) -> Result<(), &'static str> {
    is_so.then_some(()).ok_or(otherwise)
}

impl<const LEAF: usize, const INNER: usize> BPlus<LEAF, INNER> {
    /// Reads all nodes; returns how many leaves there are.
    ///
    /// # Errors
    ///
    /// The fault that was found: a level differs from what the level above leads to, or a key is
    /// outside of its node's bounds.
    ///
    /// # Safety
    ///
    /// In a snapshot of the domain to which the tree belongs.
    pub unsafe fn check<K: Datum + Ord, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        session: &S,
    ) -> Result<usize, &'static str> {
        // SAFETY: the session is a snapshot (contract of this function); objects that it has found
        // stay until its end.
        unsafe {
            let Anchor { root, height } = *session.deref(anchor);
            let mut level = Level { nodes: [root].into(), borders: Vec::new() };
            for _ in 0..height {
                level = Self::level_below(session, &level)?;
            }
            let mut last: Option<&K> = None;
            for (at, &link) in level.nodes.iter().enumerate() {
                let leaf = &*session.deref(typed::<Leaf<K, V, LEAF>>(link));
                let next = level.nodes.get(at + 1).copied().unwrap_or_default();
                ensure(leaf.end.next.as_ptr() == next.as_ptr(), "a leaf leads past the next one")?;
                for key in leaf.keys() {
                    let key = key.get();
                    ensure(last.is_none_or(|last| last < key), "keys are not in order")?;
                    last = Some(key);
                    ensure(at == 0 || level.borders[at - 1].get() <= key, "a key before its leaf")?;
                    ensure(next.is_null() || key < leaf.end.high.get(), "a key after its leaf")?;
                }
                ensure(next.is_null() || leaf.end.high.is(level.borders[at]), "another border")?;
            }
            Ok(level.nodes.len())
        }
    }

    /// # Safety
    ///
    /// As for [`check`](Self::check); the level consists of inner nodes.
    unsafe fn level_below<K: Datum + Ord, S: RawSession>(
        session: &S,
        level: &Level<K>,
    ) -> Result<Level<K>, &'static str> {
        let mut below = Level { nodes: Vec::new(), borders: Vec::new() };
        for (at, &link) in level.nodes.iter().enumerate() {
            // SAFETY: the session has found the node, and all nodes of this level are inner ones
            // (contract of this function).
            let node = unsafe { &*session.deref(typed::<Inner<K, INNER>>(link)) };
            let next = level.nodes.get(at + 1).copied().unwrap_or_default();
            ensure(node.end.next.as_ptr() == next.as_ptr(), "a node leads past the next one")?;
            below.nodes.extend((0..=node.len()).map(|place| node.at(place)));
            below.borders.extend_from_slice(node.keys());
            if let Some(&border) = level.borders.get(at) {
                // SAFETY: there is a next node, so that the end was written.
                ensure(unsafe { node.end.high.is(border) }, "another border")?;
                below.borders.push(border);
            }
        }
        Ok(below)
    }
}

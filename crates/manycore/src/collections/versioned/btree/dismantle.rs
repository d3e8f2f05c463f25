//! Frees an unused tree, in a domain that remains in use.
//!
//! Nodes are freed by transactions here, too, since threads' logs may have versions of them, which
//! are discarded as usual.

use super::node::{Anchor, Inner, Leaf};
use super::{BPlus, typed};
use crate::collections::versioned::word::Datum;
use crate::session::{self, Link, RawSession, View};

impl<const LEAF: usize, const INNER: usize> BPlus<LEAF, INNER> {
    /// Frees everything, level by level, a node at a time.
    ///
    /// # Safety
    ///
    /// The handle is in no session, and belongs to the tree's domain; the tree is not used again.
    pub(super) unsafe fn dismantle_levels<K: Datum, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        handle: &mut S,
    ) {
        // SAFETY: `retry` has begun the session; the anchor is there, and freed once.
        let Anchor { root, height } = session::retry(handle, View::Latest, |session| unsafe {
            let begin = *session.deref(anchor);
            session.free(anchor).map(|()| begin)
        });
        let mut begin = root;
        for _ in 0..height {
            let mut node = typed::<Inner<K, INNER>>(begin);
            let mut below = None;
            while !node.is_null() {
                // SAFETY: `retry` has begun the session. The node is valid, since no other thread
                // uses the tree. It is freed once: it was the next node of one that is freed now.
                let (first, next) = session::retry(handle, View::Latest, |session| unsafe {
                    let Inner { end, .. } = *session.deref(node);
                    let first = (*session.deref(node)).at(0);
                    session.free(node).map(|()| (first, end.next))
                });
                below.get_or_insert(first);
                node = next;
            }
            begin = below.expect("a level has a node");
        }
        let mut leaf = typed::<Leaf<K, V, LEAF>>(begin);
        while !leaf.is_null() {
            // SAFETY: `retry` has begun the session. The leaf is valid, since no other thread uses
            // the tree, and it is freed once. Each key and value is in one leaf, and each border is
            // the end of one leaf.
            leaf = session::retry(handle, View::Latest, |session| unsafe {
                let old = *session.deref(leaf);
                session.free(leaf)?;
                old.keys().iter().try_for_each(|key| key.free(session))?;
                old.values().iter().try_for_each(|value| value.free(session))?;
                if !old.end.next.is_null() {
                    old.end.high.free(session)?;
                }
                Ok(old.end.next)
            });
        }
    }
}

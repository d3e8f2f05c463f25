//! The end of a tree that nobody uses any more, in a domain that goes on.
//!
//! Nodes are freed by transactions all the same, since versions of them may be in threads' logs:
//! those go as they always do.

use super::node::{Anchor, Inner, Leaf};
use super::{BPlus, typed};
use crate::collections::versioned::word::Datum;
use crate::session::{self, Link, RawSession, View};

impl<const LEAF: usize, const INNER: usize> BPlus<LEAF, INNER> {
    /// Frees everything, level by level, a node at a time.
    ///
    /// # Safety
    ///
    /// The handle is in no session, and of the domain to which the tree belongs; that is not used
    /// again.
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
                // SAFETY: `retry` has begun the session; the node is there, since nobody else uses
                // the tree, and is freed once: it was the next one of a node that is freed now.
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
            // SAFETY: `retry` has begun the session; the leaf is there, since nobody else uses the
            // tree, and is freed once. Each key and value is in one leaf, and each border is the
            // end of one.
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

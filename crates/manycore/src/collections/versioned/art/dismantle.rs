//! Frees an unused tree, in a domain that remains in use.
//!
//! Nodes are freed by transactions here, too, since threads' logs may have versions of them, which
//! are discarded as usual.

use alloc::vec::Vec;

use super::Art;
use super::node::{Anchor, Below, Kind, Leaf, Wide};
use super::walk::of_any_size;
use crate::collections::versioned::word::Datum;
use crate::session::{self, Conflict, Link, RawSession, View};

impl Art {
    /// Frees everything, a node at a time.
    ///
    /// # Safety
    ///
    /// The handle is in no session, and belongs to the tree's domain; the tree is not used again.
    pub(super) unsafe fn dismantle_nodes<K: Datum, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        handle: &mut S,
    ) {
        // SAFETY: `retry` has begun the session; the anchor is there, and freed once.
        let root = session::retry(handle, View::Latest, |session| unsafe {
            let root = (*session.deref(anchor)).root;
            session.free(anchor).map(|()| root)
        });
        let mut left = Vec::from([root]);
        while let Some(below) = left.pop() {
            // SAFETY: `retry` has begun the session. The nodes below are valid, since no other
            // thread uses the tree. Each is freed once: one link led to it, from a node that is
            // freed already.
            let more = session::retry(handle, View::Latest, |session| unsafe {
                let mut more = Vec::new();
                Self::free::<K, V, S>(session, below, &mut more)?;
                Ok(more)
            });
            left.extend(more);
        }
    }

    /// Frees a node or a leaf, and returns what is below it.
    ///
    /// # Safety
    ///
    /// To be called in a session that has found the object; after the commit nothing leads to it.
    unsafe fn free<K: Datum, V: Datum, S: RawSession>(
        session: &mut S,
        below: Below,
        more: &mut Vec<Below>,
    ) -> Result<(), Conflict> {
        let Some(kind) = below.kind() else { return Ok(()) };
        // SAFETY: the contract of this function; the links' kinds give the types of their targets.
        unsafe {
            of_any_size!(below, kind, link => {
                let node = *session.deref(link);
                session.free(link)?;
                more.push(node.end);
                more.extend(node.entries().map(|(_, below)| below));
            }, otherwise match kind {
                Kind::Wide => {
                    let link = below.link::<Wide>();
                    let node = *session.deref(link);
                    session.free(link)?;
                    more.push(node.end);
                    for &part in node.parts.iter().filter(|part| !part.is_null()) {
                        more.extend((*session.deref(part)).entries(0).map(|(_, below)| below));
                        session.free(part)?;
                    }
                }
                _ => {
                    let link = below.link::<Leaf<K, V>>();
                    let leaf = *session.deref(link);
                    session.free(link)?;
                    leaf.key.free(session)?;
                    leaf.value.free(session)?;
                }
            });
        }
        Ok(())
    }
}

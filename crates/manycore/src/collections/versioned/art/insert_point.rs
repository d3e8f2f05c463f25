//! Where a key would be that is not there.

use super::Art;
use super::key::ArtKey;
use super::node::{Anchor, Below};
use super::walk::{Changed, Slot, Way, common};
use crate::collections::versioned::word::Datum;
use crate::session::{Link, RawSession};

/// Where a key would be.
pub enum InsertPoint {
    /// At a link that leads nowhere, of the last node on the key's way.
    Free,
    /// At a link that leads to another node or leaf, whose keys have their first bytes in common
    /// with the key.
    Between(Parting),
}

/// Where the way of a new key branches off from the existing ones.
pub struct Parting {
    pub slot: Slot,
    /// What the link leads to.
    pub below: Below,
    /// How many bytes are common.
    pub common: usize,
    /// The byte that follows in the other keys, if they do not end there.
    pub other: Option<u8>,
}

impl Parting {
    /// Checks that the key differs from the keys of the link's target between the node above and
    /// that target. If it does not, another thread has inserted a node there since; this is a
    /// conflict.
    ///
    /// # Safety
    ///
    /// To be called in the session that has found the place; from `depth` on the key is below the
    /// link.
    unsafe fn checked<S: RawSession>(
        self,
        session: &S,
        key: &[u8],
        depth: usize,
    ) -> Result<InsertPoint, Changed> {
        // SAFETY: the session has found the place (contract of this function), and with it the node
        // below.
        let path = unsafe { Art::path(session, self.below) };
        let is_same = self.other.is_none() && self.common == key.len();
        let is_between = self.common >= depth && path.is_none_or(|path| self.common < path.depth());
        if is_between && !is_same { Ok(InsertPoint::Between(self)) } else { Err(Changed) }
    }
}

impl Art {
    /// Where to insert a key that a walk has not found.
    ///
    /// If nodes have skipped bytes, only a leaf shows at which byte the key differs from the path.
    /// That may be above nodes that the walk has passed.
    ///
    /// # Errors
    ///
    /// If what there is has changed since.
    ///
    /// # Safety
    ///
    /// In the session in which the walk was.
    pub(super) unsafe fn insert_point<K: Datum + ArtKey, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        session: &S,
        key: &[u8],
        way: &Way,
    ) -> Result<InsertPoint, Changed> {
        // SAFETY: the session has found all nodes of the path (contract of this function).
        unsafe {
            if way.is_exact && way.below.is_none() {
                return Ok(InsertPoint::Free);
            }
            let from = if way.below.is_none() { way.slot.holder } else { way.below };
            let parting = Self::parting_from::<K, V, S>(session, key, way, from)?;
            if way.below.is_none()
                && parting.common + usize::from(way.slot.byte.is_some()) >= way.depth
            {
                return Ok(InsertPoint::Free);
            }
            if parting.common >= way.depth {
                return parting.checked(session, key, way.depth);
            }
            let (slot, below, depth) = Self::parting(anchor, session, key, parting.common);
            let again = Way { slot, below, above: slot, depth, is_exact: false };
            let parting = Self::parting_from::<K, V, S>(session, key, &again, below)?;
            parting.checked(session, key, depth)
        }
    }

    /// The number of bytes that a key has in common with all keys below a node, or with a leaf.
    ///
    /// # Safety
    ///
    /// As of [`insert_point`](Self::insert_point).
    unsafe fn parting_from<K: Datum + ArtKey, V: Datum, S: RawSession>(
        session: &S,
        key: &[u8],
        way: &Way,
        below: Below,
    ) -> Result<Parting, Changed> {
        let (slot, depth) = (way.slot, way.depth);
        // SAFETY: the session has found it (contract of this function).
        let path = unsafe { Self::path(session, below) };
        let known = path.filter(|path| way.is_exact && path.depth() > depth);
        if let Some(bytes) = known.and_then(|path| path.since(depth)) {
            let more = common(&key[depth..], bytes);
            let other = bytes.get(more).copied();
            return Ok(Parting { slot, below, common: depth + more, other });
        }
        // SAFETY: the session has found the nodes below (contract of this function).
        let leaf = unsafe { Self::some_leaf::<K, V, S>(session, below)?.key.get() }.bytes();
        let common = common(key, leaf.as_ref());
        Ok(Parting { slot, below, common, other: leaf.as_ref().get(common).copied() })
    }
}

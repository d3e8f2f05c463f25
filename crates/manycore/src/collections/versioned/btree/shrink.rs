//! Removes an entry: a node with few keys is merged with its right or left neighbour, in the
//! transaction of the removal.
//!
//! Only children of the same parent are merged, so the border between them is one of that parent's
//! keys. A node is small if it is less than a quarter full. It is merged with another if both
//! together fill at most three quarters. So a node that was just split or merged is far from the
//! next split or merge.

use super::grow::{Parent, untyped};
use super::node::{Anchor, Inner, Leaf};
use super::{BPlus, Path, typed};
use crate::collections::versioned::word::Datum;
use crate::session::{Conflict, Link, RawSession};
use crate::sync::mutation;

/// Whether a node with `length` keys of `room` has to be merged with a neighbour, if there is one
/// that is not too full.
fn is_small(length: usize, room: usize) -> bool {
    length < room.div_ceil(4)
}

/// Whether two nodes, with this many keys in the end, have few enough together. One without any key
/// can always be removed.
fn are_few([one, other]: [usize; 2], both: usize, room: usize) -> bool {
    both <= room * 3 / 4 || both <= room && (one == 0 || other == 0)
}

/// Two neighbours, and the index of the left one in their parent.
struct Pair<T> {
    left: Link<T>,
    right: Link<T>,
    place: usize,
}

impl<T> Pair<T> {
    /// The pairs in which a node may be merged: with its right neighbour and with its left one, if
    /// these have the same parent.
    fn of<K: Datum, const N: usize>(
        parent: &Inner<K, N>,
        place: usize,
    ) -> impl Iterator<Item = Self> {
        let lefts = [Some(place).filter(|&place| place < parent.len()), place.checked_sub(1)];
        lefts.into_iter().flatten().map(|place| Self {
            left: typed(parent.at(place)),
            right: typed(parent.at(place + 1)),
            place,
        })
    }

    /// Whether this is what the parent has.
    fn is_in<K: Datum, const N: usize>(&self, parent: &Inner<K, N>) -> bool {
        self.place < parent.len()
            && parent.at(self.place) == untyped(self.left)
            && parent.at(self.place + 1) == untyped(self.right)
    }
}

impl<const LEAF: usize, const INNER: usize> BPlus<LEAF, INNER> {
    /// Merges a locked leaf with a neighbour if it has become small, and then the nodes above.
    ///
    /// # Safety
    ///
    /// To be called in a session that has walked the path to the leaf; the leaf is the session's
    /// copy.
    pub(super) unsafe fn shrink<K: Datum, V: Datum, S: RawSession>(
        session: &mut S,
        anchor: Link<Anchor>,
        path: &mut Path,
        (link, leaf): (Link<Leaf<K, V, LEAF>>, *mut Leaf<K, V, LEAF>),
    ) -> Result<(), Conflict> {
        // SAFETY: the session is open (contract of this function), and links that it has found lead
        // to nodes that stay until its end. No reference to a node's copy is left when the node is
        // locked again. After the commit nothing leads to the right leaf: it, its neighbour and its
        // parent are locked.
        unsafe {
            if !is_small((*leaf).len(), LEAF) {
                return Ok(());
            }
            let Some(above) = path.pop() else { return Ok(()) };
            let Parent { link: above, node, place } =
                Self::parent::<K, S>(session, above, untyped(link))?;
            let is_alone = node.len() == 0;
            let length = |leaf: Link<Leaf<K, V, LEAF>>| (*session.deref(leaf)).len();
            let few = Pair::of(node, place).find(|pair: &Pair<Leaf<K, V, LEAF>>| {
                let lengths = [length(pair.left), length(pair.right)];
                are_few(lengths, lengths[0] + lengths[1], LEAF)
            });
            let Some(pair) = few else {
                // This is an inner node with the leaf as its only child: it should have been merged
                // before.
                return match is_alone {
                    true => Self::shrink_above::<K, S>(session, anchor, path, above),
                    false => Ok(()),
                };
            };
            let parent: *mut Inner<K, INNER> = session.try_lock(above)?;
            if !pair.is_in(&*parent) {
                return Err(Conflict::Retry);
            }
            let left = session.try_lock(pair.left)?;
            session.free(pair.right)?;
            let right = *session.deref(pair.right);
            if (*left).end.next != pair.right || (*left).len() + right.len() > LEAF {
                return Err(Conflict::Retry);
            }
            let end = (*left).end;
            (*left).merge(&right);
            if mutation!("btree-old-end") {
                (*left).end = end;
            }
            // The border key belonged to the leaves, and is freed with the merged one; inner nodes
            // have no border keys of their own.
            (*parent).remove(pair.place).free(session)?;
            Self::shrink_above::<K, S>(session, anchor, path, above)
        }
    }

    /// Does the same for an inner node, and for those above it. A root with only one child is
    /// removed.
    ///
    /// # Safety
    ///
    /// To be called in a session that has walked the path to the node.
    unsafe fn shrink_above<K: Datum, S: RawSession>(
        session: &mut S,
        anchor: Link<Anchor>,
        path: &mut Path,
        mut link: Link<Inner<K, INNER>>,
    ) -> Result<(), Conflict> {
        // SAFETY: the session is open (contract of this function), and links that it has found lead
        // to nodes that stay until its end. After the commit nothing leads to the right node: it,
        // its neighbour and its parent are locked.
        unsafe {
            while is_small((*session.deref(link)).len(), INNER) {
                let Some(above) = path.pop() else {
                    return Self::lower::<K, S>(session, anchor, link);
                };
                let Parent { link: above, node, place } =
                    Self::parent::<K, S>(session, above, untyped(link))?;
                let is_alone = node.len() == 0;
                let length = |node: Link<Inner<K, INNER>>| (*session.deref(node)).len();
                let few = Pair::of(node, place).find(|pair: &Pair<Inner<K, INNER>>| {
                    let lengths = [length(pair.left), length(pair.right)];
                    are_few(lengths, lengths[0] + lengths[1] + 1, INNER)
                });
                link = above;
                let Some(pair) = few else {
                    if is_alone {
                        continue;
                    }
                    return Ok(());
                };
                let parent: *mut Inner<K, INNER> = session.try_lock(above)?;
                if !pair.is_in(&*parent) {
                    return Err(Conflict::Retry);
                }
                let left = session.try_lock(pair.left)?;
                session.free(pair.right)?;
                let right = *session.deref(pair.right);
                if (*left).end.next != pair.right || (*left).len() + right.len() + 1 > INNER {
                    return Err(Conflict::Retry);
                }
                let border = (*parent).remove(pair.place);
                (*left).merge(border, &right);
            }
            Ok(())
        }
    }

    /// Removes one level of the tree, if this node is its root and leads to only one node.
    ///
    /// # Safety
    ///
    /// In a session that has found the node.
    unsafe fn lower<K: Datum, S: RawSession>(
        session: &mut S,
        anchor: Link<Anchor>,
        root: Link<Inner<K, INNER>>,
    ) -> Result<(), Conflict> {
        // SAFETY: session and node are valid (contract of this function). After the commit nothing
        // leads to the node: it and the anchor are locked.
        unsafe {
            if (*session.deref(root)).len() > 0 {
                return Ok(());
            }
            let begin = &mut *session.try_lock(anchor)?;
            session.free(root)?;
            let node = &*session.deref(root);
            if begin.root != untyped(root) || node.len() > 0 {
                return Err(Conflict::Retry);
            }
            *begin = Anchor { root: node.at(0), height: begin.height - 1 };
            Ok(())
        }
    }
}

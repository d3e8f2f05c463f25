//! Adds an entry. Where there is no room, nodes are divided, from the leaf upwards, in the
//! transaction of the insertion.

use super::node::{Anchor, Inner, Leaf};
use super::{BPlus, Path};
use crate::collections::versioned::word::{Datum, Word};
use crate::session::{Conflict, Link, RawSession};

/// The parent of a node, as it was read, and the node's index in it.
pub(super) struct Parent<'s, K, const INNER: usize> {
    pub link: Link<Inner<K, INNER>>,
    pub node: &'s Inner<K, INNER>,
    pub place: usize,
}

impl<const LEAF: usize, const INNER: usize> BPlus<LEAF, INNER> {
    /// Inserts an entry into a locked leaf, at its position.
    ///
    /// # Safety
    ///
    /// To be called in a session that has walked the path to the leaf, with the session's copy of
    /// the leaf. The words belong to the session, which links them.
    pub(super) unsafe fn add<K: Datum + Clone, V: Datum, S: RawSession>(
        session: &mut S,
        anchor: Link<Anchor>,
        path: &mut Path,
        (link, leaf): (Link<Leaf<K, V, LEAF>>, *mut Leaf<K, V, LEAF>),
        at: usize,
        (key, value): (Word<K>, Word<V>),
    ) -> Result<(), Conflict> {
        // SAFETY: the leaf is this session's copy, to which nothing else refers (contract of this
        // function); keys in it are valid until the session's end.
        let leaf = unsafe { &mut *leaf };
        if leaf.len() < LEAF {
            leaf.insert(at, key, value);
            return Ok(());
        }
        // Keys that are inserted in their order leave full leaves behind.
        let is_last = at == LEAF && leaf.end.next.is_null();
        let cut = if is_last { LEAF } else { LEAF / 2 };
        let first = if is_last { key } else { leaf.keys()[cut] };
        // SAFETY: the key is in the leaf, or about to be; the clone becomes the border between the
        // two leaves below.
        let border = unsafe { Word::claimed(session, first.get().clone()) };
        let mut right = leaf.split_off(cut);
        if is_last || at > cut {
            right.insert(at - cut, key, value);
        } else {
            leaf.insert(at, key, value);
        }
        // SAFETY: the session is open (contract of this function).
        let right = unsafe { session.alloc(right) };
        (leaf.end.high, leaf.end.next) = (border, right);
        // SAFETY: the session is open, and has come over the path to the leaf (contract of this
        // function).
        unsafe { Self::link::<K, S>(session, anchor, path, untyped(link), border, untyped(right)) }
    }

    /// Adds a link to a node's parent, to another node, which is to the right of the first from a
    /// key on.
    ///
    /// # Safety
    ///
    /// To be called in a session that has walked the path to the left node, and has locked that.
    unsafe fn link<K: Datum, S: RawSession>(
        session: &mut S,
        anchor: Link<Anchor>,
        path: &mut Path,
        mut left: Link<()>,
        mut border: Word<K>,
        mut right: Link<()>,
    ) -> Result<(), Conflict> {
        // SAFETY: the session is open (contract of this function), and links that it has found lead
        // to nodes that stay until its end. Each node is locked once in this loop, on another level
        // than those before.
        unsafe {
            while let Some(above) = path.pop() {
                let Parent { link, place, .. } = Self::parent::<K, S>(session, above, left)?;
                let node: &mut Inner<K, INNER> = &mut *session.try_lock(link)?;
                if place > node.len() || node.at(place) != left {
                    return Err(Conflict::Retry);
                }
                if node.len() < INNER {
                    node.insert(place, border, right);
                    return Ok(());
                }
                let is_last = place == INNER && node.end.next.is_null();
                let cut = if is_last { INNER - 1 } else { INNER / 2 };
                let (middle, mut upper) = node.split_off(cut);
                match place.checked_sub(cut + 1) {
                    Some(place) => upper.insert(place, border, right),
                    None => node.insert(place, border, right),
                }
                let upper = session.alloc(upper);
                (node.end.high, node.end.next) = (middle, upper);
                (left, border, right) = (untyped(link), middle, untyped(upper));
            }
            let begin = &mut *session.try_lock(anchor)?;
            if begin.root != left {
                return Err(Conflict::Retry);
            }
            let mut root = Inner::<K, INNER>::new(left);
            root.insert(0, border, right);
            *begin = Anchor { root: untyped(session.alloc(root)), height: begin.height + 1 };
            Ok(())
        }
    }

    /// The node that leads to a node of the level below, and its index: this node, or one to the
    /// right of it.
    ///
    /// # Safety
    ///
    /// In a session that has found both.
    pub(super) unsafe fn parent<K: Datum, S: RawSession>(
        session: &S,
        mut above: Link<Inner<K, INNER>>,
        child: Link<()>,
    ) -> Result<Parent<'_, K, INNER>, Conflict> {
        loop {
            // SAFETY: session and node are valid (contract of this function), and links that a
            // session has found lead to nodes that stay until its end.
            let node = unsafe { &*session.deref(above) };
            if let Some(place) = node.position(child) {
                return Ok(Parent { link: above, node, place });
            }
            if node.end.next.is_null() {
                return Err(Conflict::Retry); // what was above has changed since
            }
            above = node.end.next;
        }
    }
}

/// A node of any level.
pub(super) fn untyped<T>(node: Link<T>) -> Link<()> {
    Link::from_ptr(node.as_ptr())
}

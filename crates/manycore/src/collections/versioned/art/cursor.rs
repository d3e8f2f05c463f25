//! Gaps between leaves, which the cursor crosses one after the other, in the order of keys or
//! backwards.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Bound;

use super::Art;
use super::key::ArtKey;
use super::node::{Anchor, Below, Kind, Leaf, Node, PART, Part, Path, Wide, part_of};
use super::walk::of_any_size;
use crate::collections::versioned::structure::Observe;
use crate::collections::versioned::word::Datum;
use crate::session::{Link, RawSession};

/// A leaf that a cursor has gone over.
pub type Seen<'s, K, V> = (Link<Leaf<K, V>>, &'s Leaf<K, V>);

/// A node, and a gap between its links. Gap 0 is before all links; the first link is that of the
/// key that ends at the node.
struct Gap {
    node: Below,
    at: usize,
}

/// A gap between leaves: one gap in each node of the path from the anchor, which counts as a node
/// with one link here.
pub struct Cursor(Vec<Gap>);

/// The side of a leaf or a gap on which the neighbour is searched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Front,
    Back,
}

/// All functions are to be called in a snapshot of the tree's domain. For a cursor, it is the
/// snapshot in which the cursor was created.
impl Cursor {
    /// Before all leaves.
    ///
    /// # Safety
    ///
    /// In a snapshot of the domain to which the tree belongs.
    pub unsafe fn all<S: RawSession>(
        anchor: Link<Anchor>,
        session: &S,
        observer: &impl Observe<S>,
    ) -> Self {
        let mut cursor = Self(Vec::new());
        // SAFETY: a snapshot of the tree's domain (contract of this function), in which the anchor
        // is always found.
        unsafe { cursor.enter(session, Gap { node: anchor.into(), at: 0 }, observer) };
        cursor
    }

    /// Goes into a node.
    ///
    /// # Safety
    ///
    /// In a session that has found it.
    unsafe fn enter<S: RawSession>(&mut self, session: &S, gap: Gap, observer: &impl Observe<S>) {
        if observer.is_interested() {
            // SAFETY: the session has found the node (contract of this function), and so it stays
            // until its end.
            unsafe { observe_all(session, gap.node, observer) };
        }
        self.0.push(gap);
    }

    /// Goes over the next leaf, and returns that.
    ///
    /// # Safety
    ///
    /// As of this type.
    pub unsafe fn next<'s, K: Datum, V: Datum, S: RawSession>(
        &mut self,
        session: &'s S,
        observer: &impl Observe<S>,
    ) -> Option<Seen<'s, K, V>> {
        // SAFETY: objects that the session has found stay until its end, and the cursor is used
        // with that session only (contract of this type).
        unsafe {
            while let Some(gap) = self.0.last_mut() {
                match after(session, gap.node, gap.at) {
                    None => _ = self.0.pop(),
                    Some((place, below)) => {
                        gap.at = place + 1;
                        if below.is_leaf() {
                            let link = below.link();
                            return Some((link, &*session.deref(link)));
                        }
                        self.enter(session, Gap { node: below, at: 0 }, observer);
                    }
                }
            }
            None
        }
    }

    /// Goes back over the leaf before, and returns that.
    ///
    /// # Safety
    ///
    /// As of this type.
    pub unsafe fn next_back<'s, K: Datum, V: Datum, S: RawSession>(
        &mut self,
        session: &'s S,
        observer: &impl Observe<S>,
    ) -> Option<Seen<'s, K, V>> {
        // SAFETY: objects that the session has found stay until its end, and the cursor is used
        // with that session only (contract of this type).
        unsafe {
            while let Some(gap) = self.0.last_mut() {
                match before(session, gap.node, gap.at) {
                    None => _ = self.0.pop(),
                    Some((place, below)) => {
                        gap.at = place;
                        if below.is_leaf() {
                            let link = below.link();
                            return Some((link, &*session.deref(link)));
                        }
                        self.enter(session, Gap { node: below, at: usize::MAX }, observer);
                    }
                }
            }
            None
        }
    }

    /// Creates one at an end of a range: with no leaf of the range outside.
    ///
    /// # Safety
    ///
    /// As of [`all`](Self::all).
    pub unsafe fn at_bound<K: Datum + ArtKey, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        session: &S,
        bound: Bound<&[u8]>,
        side: Side,
        observer: &impl Observe<S>,
    ) -> Self {
        let (key, includes) = match bound {
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
            // SAFETY: a snapshot of the tree's domain (contract of this function, that of `all`).
            Bound::Unbounded => unsafe {
                let mut cursor = Self::all(anchor, session, observer);
                cursor.0[0].at = usize::from(side == Side::Back);
                return cursor;
            },
        };
        let mut cursor = Self(Vec::new());
        // In each node on the path, the gap is beyond the link that is followed.
        let far = usize::from(side == Side::Front);
        let inside = if side == Side::Front { Ordering::Greater } else { Ordering::Less };
        // SAFETY: the contract of this function: objects that the session has found stay.
        unsafe {
            cursor.enter(session, Gap { node: anchor.into(), at: far }, observer);
            let (mut below, mut from) = ((*session.deref(anchor)).root, 0);
            loop {
                let (order, path) = match below.kind() {
                    None => return cursor,
                    Some(Kind::Leaf) => {
                        let leaf = &*session.deref(below.link::<Leaf<K, V>>());
                        let order = leaf.key.get().bytes().as_ref().cmp(key);
                        (if includes && order.is_eq() { inside } else { order }, None)
                    }
                    Some(_) => order_of::<K, V, S>(session, below, (key, from)),
                };
                let (Ordering::Equal, Some(path)) = (order, path) else {
                    if order == inside {
                        // All that is below is in the range.
                        let gap = cursor.0.last_mut().expect("the anchor at least");
                        gap.at = if side == Side::Front { gap.at - 1 } else { gap.at + 1 };
                    }
                    return cursor;
                };
                let Some(&byte) = key.get(path.depth()) else {
                    let at = usize::from(includes == (side == Side::Back));
                    cursor.enter(session, Gap { node: below, at }, observer);
                    return cursor;
                };
                let (at, next) = place_of(session, below, byte);
                let is_there = !next.is_none();
                let at = at + if is_there { far } else { 0 };
                cursor.enter(session, Gap { node: below, at }, observer);
                (below, from) = (next, path.depth() + 1);
            }
        }
    }
}

/// Compares all keys below a node with one key; they are equal if that key begins with the node's
/// path. The key's bytes up to `from` are those of the path.
///
/// # Safety
///
/// In a session that has found the node.
unsafe fn order_of<'s, K: Datum + ArtKey, V: Datum, S: RawSession>(
    session: &'s S,
    node: Below,
    (key, from): (&[u8], usize),
) -> (Ordering, Option<&'s Path>) {
    // SAFETY: the contract of this function; the nodes below it were found, too.
    unsafe {
        let Some(path) = Art::path(session, node) else { return (Ordering::Less, None) };
        let end = path.depth();
        let of_key = key.get(from..end.min(key.len())).unwrap_or_default();
        let order = match path.since(from) {
            Some(bytes) => bytes.cmp(of_key),
            None => match Art::some_leaf::<K, V, S>(session, node) {
                Ok(leaf) => {
                    let leaf = leaf.key.get().bytes();
                    leaf.as_ref().get(from..end).unwrap_or_default().cmp(of_key)
                }
                Err(_) => Ordering::Less,
            },
        };
        (order, Some(path))
    }
}

/// The first link of a node at or after a gap: its index and its target.
///
/// # Safety
///
/// In a session that has found the node.
unsafe fn after<S: RawSession>(session: &S, node: Below, at: usize) -> Option<(usize, Below)> {
    let kind = node.kind()?;
    // The place of the key that ends there.
    let end = |end: Below| (at == 0 && !end.is_none()).then_some((0, end));
    let from = at.saturating_sub(1);
    // SAFETY: objects that the session has found stay (contract of this function), and their kinds
    // give their types.
    unsafe {
        of_any_size!(node, kind, link => {
            let node = &*session.deref(link);
            end(node.end).or_else(|| {
                let below = node.at(from);
                (!below.is_none()).then_some((from + 1, below))
            })
        }, otherwise match kind {
            Kind::Wide => {
                let node = &*session.deref(node.link::<Wide>());
                end(node.end).or_else(|| {
                    let mut bytes = from..256;
                    while let Some(byte) = bytes.next() {
                        let (part, _) = part_of(byte as u8);
                        if node.parts[part].is_null() {
                            bytes.start = (part + 1) * PART;
                            continue;
                        }
                        let below = Art::in_part(session, node, byte as u8);
                        if !below.is_none() {
                            return Some((byte + 1, below));
                        }
                    }
                    None
                })
            }
            Kind::Anchor => end((*session.deref(node.link::<Anchor>())).root),
            _ => None,
        })
    }
}

/// The last link of a node before a gap: its index and its target.
///
/// # Safety
///
/// In a session that has found the node.
unsafe fn before<S: RawSession>(session: &S, node: Below, at: usize) -> Option<(usize, Below)> {
    let kind = node.kind()?;
    let end = |end: Below| (at > 0 && !end.is_none()).then_some((0, end));
    // SAFETY: objects that a session has found stay until its end (contract of this function), and
    // their kinds give their types.
    unsafe {
        of_any_size!(node, kind, link => {
            let node = &*session.deref(link);
            match at.min(node.len() + 1) {
                0 | 1 => end(node.end),
                at => Some((at - 1, node.at(at - 2))),
            }
        }, otherwise match kind {
            Kind::Wide => {
                let node = &*session.deref(node.link::<Wide>());
                let mut byte = at.clamp(1, 257) - 1;
                while byte > 0 {
                    let (part, _) = part_of((byte - 1) as u8);
                    if node.parts[part].is_null() {
                        byte = part * PART;
                        continue;
                    }
                    let below = Art::in_part(session, node, (byte - 1) as u8);
                    if !below.is_none() {
                        return Some((byte, below));
                    }
                    byte -= 1;
                }
                end(node.end)
            }
            Kind::Anchor => end((*session.deref(node.link::<Anchor>())).root),
            _ => None,
        })
    }
}

/// The index and target of a byte's link, or of the next link if the byte has none.
///
/// # Safety
///
/// In a session that has found the node.
unsafe fn place_of<S: RawSession>(session: &S, node: Below, byte: u8) -> (usize, Below) {
    let Some(kind) = node.kind() else { return (0, Below::NONE) };
    // SAFETY: objects that a session has found stay until its end (contract of this function), and
    // their kinds give their types.
    unsafe {
        of_any_size!(node, kind, link => {
            let node: &Node<_> = &*session.deref(link);
            (node.place(byte) + 1, node.get(Some(byte)))
        }, otherwise match kind {
            Kind::Wide => {
                let node = &*session.deref(node.link::<Wide>());
                (usize::from(byte) + 1, Art::in_part(session, node, byte))
            }
            _ => (0, Below::NONE),
        })
    }
}

/// Tells of all objects of a node.
///
/// # Safety
///
/// In a session that has found it.
unsafe fn observe_all<S: RawSession>(session: &S, node: Below, observer: &impl Observe<S>) {
    let Some(kind) = node.kind() else { return };
    of_any_size!(node, kind, link => observer.observe(link), otherwise match kind {
        Kind::Wide => {
            let link = node.link::<Wide>();
            observer.observe(link);
            // SAFETY: objects that a session has found stay until its end (contract of this
            // function), and their kinds give their types.
            let parts: [Link<Part>; _] = unsafe { (*session.deref(link)).parts };
            parts.into_iter().filter(|part| !part.is_null()).for_each(|p| observer.observe(p));
        }
        Kind::Anchor => observer.observe(node.link::<Anchor>()),
        _ => {}
    });
}

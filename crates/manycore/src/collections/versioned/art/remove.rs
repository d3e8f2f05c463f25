//! Removes a key: from a node that keeps others, from a node that becomes small and is replaced by
//! a smaller one, or from a node with only one other, which is then not needed.
//!
//! At every commit each node except the anchor has at least two keys, although the parts of a wide
//! node are locked one by one:
//!
//! - A transaction that removes the last key of a part changes the node, which then does not have
//!   the part any more. So of two such transactions, of any parts, one comes after the other and
//!   sees its effect.
//! - If it leaves the node wide, it has seen more than [`FEW`] keys elsewhere: more than fit into
//!   one part, so at least two parts have some. Simultaneous transactions leave at least one key in
//!   each.

use alloc::vec::Vec;

use super::Art;
use super::node::{Anchor, Below, Kind, Node, PART, Part, Wide, part_of};
use super::walk::{Slot, Way, of_any_size};
use crate::session::{Conflict, Link, RawSession};
use crate::sync::mutation;

/// A wide node with no more keys than this is made smaller.
const FEW: usize = 44;
const _: () = assert!(FEW > PART);

/// A part with no more keys than this has the others counted.
const FEW_IN_PART: usize = 6;

/// The number of keys at which a node of a size is made smaller. It is less than the next smaller
/// size has room for, so a key that is repeatedly inserted and removed does not move all others
/// each time.
const fn few(size: usize) -> usize {
    match size {
        4 => 1,
        16 => 3,
        _ => 14,
    }
}

impl Art {
    /// Removes a leaf, or another object at the end of a path.
    ///
    /// # Safety
    ///
    /// To be called in a session that has walked this path; it frees what it removes.
    pub(super) unsafe fn unlink<S: RawSession>(session: &mut S, way: &Way) -> Result<(), Conflict> {
        let slot = way.slot;
        let kind = slot.holder.kind().ok_or(Conflict::Retry)?;
        // SAFETY: the session has come this way (contract of this function).
        unsafe {
            of_any_size!(slot.holder, kind, link => {
                Self::unlink_from_node(session, link, way)
            }, otherwise match kind {
                Kind::Wide => Self::unlink_from_wide(session, slot.holder.link(), way),
                _ => {
                    let anchor = &mut *session.try_lock(slot.holder.link::<Anchor>())?;
                    if anchor.root != way.below {
                        return Err(Conflict::Retry);
                    }
                    anchor.root = Below::NONE;
                    Ok(())
                }
            })
        }
    }

    /// # Safety
    ///
    /// As of [`unlink`](Self::unlink), from this node.
    unsafe fn unlink_from_node<const N: usize, S: RawSession>(
        session: &mut S,
        link: Link<Node<N>>,
        way: &Way,
    ) -> Result<(), Conflict>
    where
        Below: From<Link<Node<N>>>,
    {
        let count = |node: &Node<N>| node.len() + usize::from(!node.end.is_none());
        // SAFETY: the session has found the node and its parent (contract of this function); copies
        // are the session's own. After the commit nothing leads to the freed node: its parent is
        // locked, and leads elsewhere.
        unsafe {
            let byte = way.slot.byte;
            if count(&*session.deref(link)) - 1 > few(N) {
                let node = &mut *session.try_lock(link)?;
                if node.get(byte) != way.below || count(node) < 3 {
                    return Err(Conflict::Retry);
                }
                if !mutation!("art-stays-linked") {
                    node.remove(byte);
                }
                return Ok(());
            }
            let mut node = Self::take(session, link)?;
            if node.get(byte) != way.below {
                return Err(Conflict::Retry);
            }
            node.remove(byte);
            let entries: Vec<_> = node.entries().collect();
            let instead = Self::instead(
                session,
                |session| Self::node_of(session, node.path, node.end, &entries),
                node.end,
                &entries,
            )?;
            Self::redirect(session, way.above, link.into(), instead)
        }
    }

    /// The replacement of a node that has become small: its only remaining child, or a smaller
    /// node.
    fn instead<S: RawSession>(
        session: &mut S,
        make: impl FnOnce(&mut S) -> Below,
        end: Below,
        entries: &[(u8, Below)],
    ) -> Result<Below, Conflict> {
        match (end.is_none(), entries) {
            (true, &[(_, only)]) => Ok(only),
            (false, []) => Ok(end),
            // Only if another has been faster.
            (true, []) => Err(Conflict::Retry),
            _ => Ok(make(session)),
        }
    }

    /// # Safety
    ///
    /// As of [`unlink`](Self::unlink), from this node.
    unsafe fn unlink_from_wide<S: RawSession>(
        session: &mut S,
        link: Link<Wide>,
        way: &Way,
    ) -> Result<(), Conflict> {
        // SAFETY: the session has found the node and its parent (contract of this function); copies
        // are the session's own. After the commit nothing leads to the freed node. A part lives as
        // long as its node, which is freed together with its parts.
        unsafe {
            let node = *session.deref(link);
            let byte = way.slot.byte;
            let of_byte = byte.map(|byte| (part_of(byte), node.parts[part_of(byte).0]));
            let left = match of_byte {
                None => 0,
                Some((_, part)) if part.is_null() => return Err(Conflict::Retry),
                Some((_, part)) => (*session.deref(part)).len() - 1,
            };
            if left <= FEW_IN_PART {
                let parts = node.parts.iter().filter(|part| !part.is_null());
                let all = parts.map(|&part| (*session.deref(part)).len()).sum::<usize>();
                let all = all + usize::from(!node.end.is_none()) - 1;
                if all <= FEW {
                    return Self::narrow(session, link, way);
                }
            }
            match of_byte {
                Some(((_, place), part)) if left > 0 => {
                    let part = &mut *session.try_lock(part)?;
                    if part.below[place] != way.below || part.len() < 2 {
                        return Err(Conflict::Retry);
                    }
                    part.below[place] = Below::NONE;
                }
                Some(((at, place), part)) => {
                    let node = &mut *session.try_lock(link)?;
                    if node.parts[at] != part {
                        return Err(Conflict::Retry);
                    }
                    node.parts[at] = Link::NULL;
                    let part: Part = Self::take(session, part)?;
                    if part.below[place] != way.below || part.len() != 1 {
                        return Err(Conflict::Retry);
                    }
                }
                None => Self::redirect(session, way.slot, way.below, Below::NONE)?,
            }
            Ok(())
        }
    }

    /// Replaces a wide node by a smaller one, without the entry at the end of the path.
    ///
    /// # Safety
    ///
    /// As of [`unlink`](Self::unlink), from this node.
    unsafe fn narrow<S: RawSession>(
        session: &mut S,
        link: Link<Wide>,
        way: &Way,
    ) -> Result<(), Conflict> {
        let Slot { byte, .. } = way.slot;
        // SAFETY: the session has found the node and its parent (contract of this function). A part
        // lives as long as its node, which is freed together with its parts.
        unsafe {
            let mut node: Wide = Self::take(session, link)?;
            let mut entries = Vec::with_capacity(FEW + 1);
            for (at, &link) in node.parts.iter().enumerate().filter(|(_, part)| !part.is_null()) {
                let part: Part = Self::take(session, link)?;
                entries.extend(part.entries(at));
            }
            let old = match byte {
                None => core::mem::replace(&mut node.end, Below::NONE),
                Some(byte) => match entries.iter().position(|(other, _)| *other == byte) {
                    None => Below::NONE,
                    Some(place) => entries.remove(place).1,
                },
            };
            if old != way.below {
                return Err(Conflict::Retry);
            }
            let instead = Self::instead(
                session,
                |session| Self::node_of(session, node.path, node.end, &entries),
                node.end,
                &entries,
            )?;
            Self::redirect(session, way.above, link.into(), instead)
        }
    }
}

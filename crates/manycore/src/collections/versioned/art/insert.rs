//! Adds a key: in a node that has room, in a larger node that replaces a full one, or in a new node
//! in between.

use alloc::vec::Vec;

use super::Art;
use super::insert_point::Parting;
use super::node::{Below, Kind, Leaf, Node, PARTS, Part, Path, Wide, part_of};
use super::walk::{Slot, Way, of_any_size};
use crate::collections::versioned::word::Datum;
use crate::session::{Conflict, Link, RawSession};
use crate::sync::mutation;

impl Art {
    /// Makes a link lead elsewhere, if it still has the expected target.
    ///
    /// # Safety
    ///
    /// To be called in a session that has found the link's node.
    pub(super) unsafe fn redirect<S: RawSession>(
        session: &mut S,
        slot: Slot,
        from: Below,
        to: Below,
    ) -> Result<(), Conflict> {
        let (holder, byte) = (slot.holder, slot.byte);
        let kind = holder.kind().ok_or(Conflict::Retry)?;
        let is = |below| below == from || mutation!("art-trusts-above");
        // SAFETY: objects that a session has found stay until its end (contract of this function),
        // and their kinds give their types; a part lives as long as its node. Copies are the
        // session's own.
        unsafe {
            of_any_size!(holder, kind, link => {
                let node = &mut *session.try_lock(link)?;
                if !is(node.get(byte)) {
                    return Err(Conflict::Retry);
                }
                node.set(byte, to);
            }, otherwise match (kind, byte) {
                (Kind::Wide, Some(byte)) => {
                    let (part, place) = part_of(byte);
                    let link = (*session.deref(holder.link::<Wide>())).parts[part];
                    if link.is_null() {
                        return Err(Conflict::Retry);
                    }
                    let part = &mut *session.try_lock(link)?;
                    if !is(part.below[place]) {
                        return Err(Conflict::Retry);
                    }
                    part.below[place] = to;
                }
                (Kind::Wide, None) => {
                    let node = &mut *session.try_lock(holder.link::<Wide>())?;
                    if !is(node.end) {
                        return Err(Conflict::Retry);
                    }
                    node.end = to;
                }
                _ => {
                    let anchor = &mut *session.try_lock(holder.link::<super::node::Anchor>())?;
                    if !is(anchor.root) {
                        return Err(Conflict::Retry);
                    }
                    anchor.root = to;
                }
            });
        }
        Ok(())
    }

    /// Frees an object; returns the session's view of it.
    ///
    /// # Safety
    ///
    /// As of [`RawSession::free`].
    pub(super) unsafe fn take<T: Copy, S: RawSession>(
        session: &mut S,
        link: Link<T>,
    ) -> Result<T, Conflict> {
        // SAFETY: the session has found the object, to which nothing leads after the commit
        // (contract of this function); until then it is valid.
        unsafe {
            session.free(link)?;
            Ok(*session.deref(link))
        }
    }

    /// The smallest kind of node with room for these entries, which are in the order of their
    /// bytes.
    ///
    /// # Safety
    ///
    /// The caller is in a session, which has a link to the node if it commits.
    pub(super) unsafe fn node_of<S: RawSession>(
        session: &mut S,
        path: Path,
        end: Below,
        entries: &[(u8, Below)],
    ) -> Below {
        // SAFETY: the session is open (contract of this function).
        unsafe {
            match entries.len() {
                0..=4 => session.alloc(Node::<4>::new(path, end, entries)).into(),
                5..=16 => session.alloc(Node::<16>::new(path, end, entries)).into(),
                17..=48 => session.alloc(Node::<48>::new(path, end, entries)).into(),
                _ => {
                    let mut parts = [Link::NULL; PARTS];
                    for of_part in entries.chunk_by(|one, two| part_of(one.0).0 == part_of(two.0).0)
                    {
                        parts[part_of(of_part[0].0).0] = session.alloc(Part::new(of_part));
                    }
                    session.alloc(Wide { path, end, parts }).into()
                }
            }
        }
    }

    /// Links a leaf where the way to its key has ended, at a link that leads nowhere.
    ///
    /// # Safety
    ///
    /// In a session that has come this way.
    pub(super) unsafe fn add<S: RawSession>(
        session: &mut S,
        way: &Way,
        leaf: Below,
    ) -> Result<(), Conflict> {
        let (slot, above) = (way.slot, way.above);
        let kind = slot.holder.kind().ok_or(Conflict::Retry)?;
        // SAFETY: objects that a session has found stay until its end (contract of this function),
        // and their kinds give their types. Copies are the session's own.
        unsafe {
            of_any_size!(slot.holder, kind, link => {
                Self::add_to_node(session, link, slot.byte, above, leaf)
            }, otherwise match (kind, slot.byte) {
                (Kind::Wide, Some(byte)) => {
                    let (part, _) = part_of(byte);
                    let link = slot.holder.link::<Wide>();
                    if !(*session.deref(link)).parts[part].is_null() {
                        return Self::redirect(session, slot, Below::NONE, leaf);
                    }
                    let node = &mut *session.try_lock(link)?;
                    if !node.parts[part].is_null() {
                        return Err(Conflict::Retry);
                    }
                    node.parts[part] = session.alloc(Part::new(&[(byte, leaf)]));
                    Ok(())
                }
                _ => Self::redirect(session, slot, Below::NONE, leaf),
            })
        }
    }

    /// # Safety
    ///
    /// As of [`add`](Self::add).
    unsafe fn add_to_node<const N: usize, S: RawSession>(
        session: &mut S,
        link: Link<Node<N>>,
        byte: Option<u8>,
        above: Slot,
        leaf: Below,
    ) -> Result<(), Conflict>
    where
        Below: From<Link<Node<N>>>,
    {
        // SAFETY: the session has found the node and its parent (contract of this function); copies
        // are the session's own. After the commit nothing leads to the freed node: its parent is
        // locked, and leads to the larger one.
        unsafe {
            let length = (*session.deref(link)).len();
            let Some(byte) = byte.filter(|_| length == N) else {
                let node = &mut *session.try_lock(link)?;
                let is_full = byte.is_some() && node.len() == N;
                if is_full || !node.get(byte).is_none() {
                    return Err(Conflict::Retry);
                }
                node.set(byte, leaf);
                return Ok(());
            };
            let old = Self::take(session, link)?;
            if !old.get(Some(byte)).is_none() {
                return Err(Conflict::Retry);
            }
            let mut entries: Vec<_> = old.entries().collect();
            entries.insert(old.place(byte), (byte, leaf));
            let larger = Self::node_of(session, old.path, old.end, &entries);
            Self::redirect(session, above, link.into(), larger)
        }
    }

    /// Inserts a node between a link and its target, where the new leaf's key differs from the
    /// target's keys. The target does not change: its path is counted from the beginning of keys.
    ///
    /// # Safety
    ///
    /// To be called in a session that has found where the keys differ. The path has the common
    /// bytes, and the byte is the next one of the leaf's key.
    pub(super) unsafe fn part_ways<K: Datum, V: Datum, S: RawSession>(
        session: &mut S,
        at: &Parting,
        path: Path,
        byte: Option<u8>,
        leaf: Link<Leaf<K, V>>,
    ) -> Result<(), Conflict> {
        let mut node = Node::<4>::new(path, Below::NONE, &[]);
        node.set(byte, leaf.into());
        // SAFETY: objects that a session has found stay until its end (contract of this function),
        // and their kinds give their types. Copies are the session's own.
        unsafe {
            if mutation!("art-new-depth") && at.below.kind() == Some(Kind::Four) {
                // The node itself becomes the upper one, and so gets another depth.
                let upper = &mut *session.try_lock(at.below.link::<Node<4>>())?;
                node.set(at.other, session.alloc(*upper).into());
                *upper = node;
                return Ok(());
            }
            node.set(at.other, at.below);
            let node = session.alloc(node).into();
            Self::redirect(session, at.slot, at.below, node)
        }
    }
}

//! The way to a key.

use super::Art;
use super::key::ArtKey;
use super::node::{Anchor, Below, Kind, Leaf, Part, Path, Wide, part_of};
use crate::collections::versioned::structure::Observe;
use crate::collections::versioned::word::Datum;
use crate::session::{Link, RawSession};
use crate::sync::mutation;

/// The location of a link: in a node or in the anchor, for a byte. Without a byte it is the link of
/// the key that ends there, or the anchor's link.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub holder: Below,
    pub byte: Option<u8>,
}

/// How a walk has ended.
#[derive(Clone, Copy)]
pub struct Way {
    /// The link at which the walk has ended, and the link's target.
    pub slot: Slot,
    pub below: Below,
    /// The link to the node in which that is.
    pub above: Slot,
    /// The number of the key's bytes before the last link's target.
    pub depth: usize,
    /// Whether all of these bytes were compared with the way.
    pub is_exact: bool,
}

/// A leaf at the end of a walk.
pub struct EndLeaf<'s, K, V> {
    pub link: Link<Leaf<K, V>>,
    pub leaf: &'s Leaf<K, V>,
    /// Whether it is the key's.
    pub is_there: bool,
}

/// The object has changed since the session found the link to it.
pub struct Changed;

/// Does the same with a link to a node of 4, 16 or 48 bytes, whose type the kind gives.
macro_rules! of_any_size {
    ($below:expr, $kind:expr, $link:ident => $action:expr, otherwise $other:expr) => {
        match $kind {
            $crate::collections::versioned::art::node::Kind::Four => {
                let $link = $below.link::<$crate::collections::versioned::art::node::Node<4>>();
                $action
            }
            $crate::collections::versioned::art::node::Kind::Sixteen => {
                let $link = $below.link::<$crate::collections::versioned::art::node::Node<16>>();
                $action
            }
            $crate::collections::versioned::art::node::Kind::FortyEight => {
                let $link = $below.link::<$crate::collections::versioned::art::node::Node<48>>();
                $action
            }
            _ => $other,
        }
    };
}
pub(super) use of_any_size;

impl Art {
    /// The path of a node; none for a leaf or an empty link.
    ///
    /// # Safety
    ///
    /// In a session that has found it.
    #[inline]
    pub(super) unsafe fn path<S: RawSession>(session: &S, node: Below) -> Option<&Path> {
        // SAFETY: objects that a session has found stay until its end (contract of this function),
        // and their kinds give their types.
        unsafe {
            let kind = node.kind()?;
            of_any_size!(node, kind, link => Some(&(*session.deref(link)).path), otherwise match kind {
                Kind::Wide => Some(&(*session.deref(node.link::<Wide>())).path),
                _ => None,
            })
        }
    }

    /// The path of a node, the target of its link for the next byte of a key, and that byte. None
    /// if the node's bytes differ from the key's.
    ///
    /// # Safety
    ///
    /// As of [`path`](Self::path).
    #[inline]
    unsafe fn step<'s, S: RawSession>(
        session: &'s S,
        node: Below,
        kind: Kind,
        (key, from): (&[u8], usize),
    ) -> (&'s Path, Option<(Option<u8>, Below)>) {
        let next = |path: &Path| path.admits(key, from).then(|| key.get(path.depth()).copied());
        // SAFETY: objects that a session has found stay until its end (contract of this function),
        // and their kinds give their types. A part lives as long as its node.
        unsafe {
            of_any_size!(node, kind, link => {
                let node = &*session.deref(link);
                (&node.path, next(&node.path).map(|byte| (byte, node.get(byte))))
            }, otherwise {
                let node = &*session.deref(node.link::<Wide>());
                let below = |byte| match byte {
                    None => node.end,
                    Some(byte) => Self::in_part(session, node, byte),
                };
                (&node.path, next(&node.path).map(|byte| (byte, below(byte))))
            })
        }
    }

    /// A byte's link in a wide node.
    ///
    /// # Safety
    ///
    /// In a session that has found the node.
    #[inline]
    pub(super) unsafe fn in_part<S: RawSession>(session: &S, node: &Wide, byte: u8) -> Below {
        let (part, place) = part_of(byte);
        let link: Link<Part> = node.parts[part];
        if link.is_null() {
            return Below::NONE;
        }
        // SAFETY: the node was found in the session (contract of this function), and so was this.
        unsafe { (*session.deref(link)).at(place) }
    }

    /// Goes where a key is, or would be.
    ///
    /// # Safety
    ///
    /// In a session of the domain to which the tree belongs.
    #[inline]
    pub(super) unsafe fn walk<'s, K: Datum + ArtKey, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        session: &'s S,
        key: &[u8],
    ) -> (Way, Option<EndLeaf<'s, K, V>>) {
        let begin = Slot { holder: anchor.into(), byte: None };
        // SAFETY: the anchor lives as long as the tree; links that a session has found lead to
        // objects that stay until its end, and their kinds give the types (contract of this
        // function).
        unsafe {
            let below = (*session.deref(anchor)).root;
            let mut way = Way { slot: begin, below, above: begin, depth: 0, is_exact: true };
            loop {
                let Some(kind) = way.below.kind() else { return (way, None) };
                if kind == Kind::Leaf {
                    let link = way.below.link::<Leaf<K, V>>();
                    let leaf = &*session.deref(link);
                    let is_there =
                        leaf.key.get().bytes().as_ref() == key || mutation!("art-trusts-way");
                    return (way, Some(EndLeaf { link, leaf, is_there }));
                }
                let (path, next) = Self::step(session, way.below, kind, (key, way.depth));
                let Some((byte, below)) = next else { return (way, None) };
                way.is_exact &= path.since(way.depth).is_some();
                way.above = way.slot;
                way.slot = Slot { holder: way.below, byte };
                way.below = below;
                way.depth = path.depth() + usize::from(byte.is_some());
            }
        }
    }

    /// The link to the node, leaf or nothing at which a key's path differs from another key's; the
    /// two have this many first bytes in common.
    ///
    /// # Safety
    ///
    /// As of [`walk`](Self::walk).
    pub(super) unsafe fn parting<S: RawSession>(
        anchor: Link<Anchor>,
        session: &S,
        key: &[u8],
        common: usize,
    ) -> (Slot, Below, usize) {
        // SAFETY: the anchor lives as long as the tree; links that a session has found lead to
        // objects that stay until its end, and their kinds give the types (contract of this
        // function).
        unsafe {
            let mut slot = Slot { holder: anchor.into(), byte: None };
            let (mut below, mut depth) = ((*session.deref(anchor)).root, 0);
            while let Some(path) = Self::path(session, below) {
                if path.depth() > common {
                    break;
                }
                let byte = key.get(path.depth()).copied();
                depth = path.depth() + usize::from(byte.is_some());
                slot = Slot { holder: below, byte };
                below = Self::get(session, slot);
            }
            (slot, below, depth)
        }
    }

    /// What a link leads to.
    ///
    /// # Safety
    ///
    /// To be called in a session that has found the link's node.
    pub(super) unsafe fn get<S: RawSession>(session: &S, slot: Slot) -> Below {
        let (holder, byte) = (slot.holder, slot.byte);
        // SAFETY: objects that a session has found stay until its end (contract of this function),
        // and their kinds give their types.
        unsafe {
            let Some(kind) = holder.kind() else { return Below::NONE };
            of_any_size!(holder, kind, link => (*session.deref(link)).get(byte), otherwise match kind {
                Kind::Wide => {
                    let node = &*session.deref(holder.link::<Wide>());
                    match byte {
                        None => node.end,
                        Some(byte) => Self::in_part(session, node, byte),
                    }
                }
                Kind::Anchor => (*session.deref(holder.link::<Anchor>())).root,
                _ => Below::NONE,
            })
        }
    }

    /// Any leaf below the place, or the leaf itself.
    ///
    /// # Safety
    ///
    /// In a session that has found what is given.
    pub(super) unsafe fn some_leaf<K: Datum, V: Datum, S: RawSession>(
        session: &S,
        mut below: Below,
    ) -> Result<&Leaf<K, V>, Changed> {
        // SAFETY: objects that a session has found stay until its end (contract of this function),
        // and their kinds give their types.
        unsafe {
            while let Some(kind) = below.kind() {
                if kind == Kind::Leaf {
                    return Ok(&*session.deref(below.link::<Leaf<K, V>>()));
                }
                below = of_any_size!(below, kind, link => {
                    let node = &*session.deref(link);
                    if node.end.is_none() { node.at(0) } else { node.end }
                }, otherwise match kind {
                    Kind::Wide => {
                        let node = &*session.deref(below.link::<Wide>());
                        let part = node.parts.iter().find(|part| !part.is_null());
                        match part {
                            _ if !node.end.is_none() => node.end,
                            Some(&part) => {
                                let below = (*session.deref(part)).below;
                                below.into_iter().find(|below| !below.is_none()).ok_or(Changed)?
                            }
                            None => return Err(Changed),
                        }
                    }
                    _ => return Err(Changed),
                });
            }
            Err(Changed)
        }
    }

    /// Returns the object that contains a link. For a link of a wide node that is the node itself,
    /// or the part if there is one.
    ///
    /// # Safety
    ///
    /// In a session that has found the node.
    pub(super) unsafe fn observe<S: RawSession>(
        session: &S,
        slot: Slot,
        observer: &impl Observe<S>,
    ) {
        let holder = slot.holder;
        let Some(kind) = holder.kind() else { return };
        of_any_size!(holder, kind, link => observer.observe(link), otherwise match kind {
            Kind::Wide => {
                let link = holder.link::<Wide>();
                // SAFETY: objects that a session has found stay until its end (contract of this
                // function), and their kinds give their types.
                let node = unsafe { &*session.deref(link) };
                let part = slot.byte.map(|byte| node.parts[part_of(byte).0]);
                match part.filter(|part| !part.is_null()) {
                    Some(part) => observer.observe(part),
                    None => observer.observe(link),
                }
            }
            Kind::Anchor => observer.observe(holder.link::<Anchor>()),
            _ => {}
        });
    }
}

/// How many bytes two keys have in common at their beginnings.
pub fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

//! Whether a tree is what the module's page says: for tests.

use alloc::vec::Vec;

use super::Art;
use super::key::ArtKey;
use super::node::{Anchor, Below, Kind, Node, Path, Wide};
use super::walk::of_any_size;
use crate::collections::versioned::word::Datum;
use crate::session::{Link, RawSession};

/// How many there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nodes {
    /// Keys.
    pub leaves: usize,
    /// Nodes with room for 4 bytes, 16, 48, and all.
    pub sizes: [usize; 4],
}

fn ensure(is_so: bool, otherwise: &'static str) -> Result<(), &'static str> {
    is_so.then_some(()).ok_or(otherwise)
}

impl Art {
    /// Reads all nodes; returns how many there are.
    ///
    /// # Errors
    ///
    /// What is wrong.
    ///
    /// # Safety
    ///
    /// In a snapshot of the domain to which the tree belongs.
    pub(in crate::collections) unsafe fn check<K: Datum + ArtKey, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        session: &S,
    ) -> Result<Nodes, &'static str> {
        let mut nodes = Nodes::default();
        // SAFETY: the session is a snapshot (contract of this function); objects that it has found
        // stay until its end.
        unsafe {
            let mut left = Vec::from([(*session.deref(anchor)).root]);
            while let Some(below) = left.pop() {
                let Some(kind) = below.kind() else { continue };
                if kind == Kind::Leaf {
                    nodes.leaves += 1;
                    continue;
                }
                let (path, end, entries, size) = Self::content(session, below, kind)?;
                nodes.sizes[size] += 1;
                let is_sorted = entries.is_sorted_by(|one, other| one.0 < other.0);
                ensure(is_sorted, "bytes are not in order")?;
                let count = entries.len() + usize::from(!end.is_none());
                ensure(count >= 2, "a node that is not needed")?;
                let some = Self::some_leaf::<K, V, S>(session, below).map_err(|_| "no leaf")?;
                let (some, depth) = (some.key.get().bytes(), path.depth());
                ensure(some.as_ref().len() >= depth, "a key that ends before its node")?;
                let bytes = &some.as_ref()[..depth];
                ensure(path == Path::of(bytes, depth), "another path than that of a key below")?;
                let all = entries.iter().map(|&(byte, below)| (Some(byte), below));
                for (byte, below) in all.chain((!end.is_none()).then_some((None, end))) {
                    let leaf = Self::some_leaf::<K, V, S>(session, below).map_err(|_| "no leaf")?;
                    let key = leaf.key.get().bytes();
                    let key = key.as_ref();
                    ensure(key.starts_with(bytes), "a key below another path")?;
                    ensure(key.get(depth) == byte.as_ref(), "a key below another byte")?;
                    let is_deeper = Self::path(session, below).is_none_or(|p| p.depth() > depth);
                    ensure(is_deeper, "a node below one that is as deep")?;
                    left.push(below);
                }
            }
        }
        Ok(nodes)
    }

    /// # Safety
    ///
    /// As of [`check`](Self::check).
    #[expect(clippy::type_complexity, reason = "taken apart by its only caller")]
    unsafe fn content<S: RawSession>(
        session: &S,
        below: Below,
        kind: Kind,
    ) -> Result<(Path, Below, Vec<(u8, Below)>, usize), &'static str> {
        // SAFETY: nothing that a snapshot finds is freed before its end (contract of this
        // function); a link's kind gives its target's type.
        unsafe {
            let content = of_any_size!(below, kind, link => {
                let node: &Node<_> = &*session.deref(link);
                (node.path, node.end, node.entries().collect(), kind as usize - Kind::Four as usize)
            }, otherwise {
                ensure(kind == Kind::Wide, "a link to what is no node")?;
                let node = &*session.deref(below.link::<Wide>());
                let parts = node.parts.iter().enumerate().filter(|(_, part)| !part.is_null());
                let mut entries = Vec::new();
                for (at, &part) in parts {
                    let part = &*session.deref(part);
                    ensure(part.len() > 0, "a part without keys")?;
                    entries.extend(part.entries(at));
                }
                (node.path, node.end, entries, 3)
            });
            Ok(content)
        }
    }
}

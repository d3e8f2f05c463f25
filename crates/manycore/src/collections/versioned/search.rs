//! A binary search tree, which is not balanced, read and changed in sessions.
//!
//! # Idea
//!
//! The tree begins with a node without a key, and all keys are to its right, so each node has one
//! above it. All functions are to be called in a session of the domain to which the tree belongs.
//!
//! # Why each operation sees one moment
//!
//! A node with two children is removed by giving it the key of its successor, the smallest key on
//! its right, and removing the successor's node. A thread that reads the upper node before this
//! commit and the lower ones after it would not find the successor's key at all. (Under RCU the
//! writer has to wait for readers between the two; Citrus does.) So every session is a snapshot.
//!
//! # What a writer locks
//!
//! A session that reads one moment and locks a node knows that the node is still as it was. The
//! path above the node may have changed. The lock is enough nevertheless, because a thread that
//! changes a key's position locks a node that the session locks, too:
//!
//! - A key is inserted below the node where its search ends: that node is locked.
//! - A node with one child is removed: the node is locked, and so is the node above, whose link
//!   changes. Keys below keep their positions.
//! - A node with two children gets another key: the node, the successor, and the node above the
//!   successor are locked. Positions change only for keys between the old and the new key, and
//!   there are none; a key that is inserted there would go below the successor.
//!
//! # Source
//!
//! A. Matveev et al. compare with this tree ("Read-Log-Update", SOSP 2015). Their base line is
//! Citrus: M. Arbel and H. Attiya, "Concurrent updates with RCU: search tree as an example", in
//! PODC 2014. Our own part is the argument for which nodes have to be locked.
//!
//! # Memory order
//!
//! The order is that of the domain's sessions: only results of [`deref`](RawSession::deref) and
//! copies by [`try_lock`](RawSession::try_lock) are shared here.
//!
//! # Cost
//!
//! Finding a key's position takes as many `deref`s as its depth: some 2 ln n for n keys in random
//! order, n in sorted order. An update locks and copies one node, a removal up to three.
//!
//! # When not to use it
//!
//! Where keys are inserted in their order: nothing balances the tree.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::mem::MaybeUninit;

use super::Shape;
use crate::session::{Conflict, Link, RawSession, View};
use crate::sync::hint;

const LEFT: usize = 0;
const RIGHT: usize = 1;

/// A node; all nodes but the first one of a tree have a key and a value.
pub struct Node<K, V> {
    /// [`LEFT`] and [`RIGHT`].
    below: [Link<Node<K, V>>; 2],
    key: MaybeUninit<K>,
    value: MaybeUninit<V>,
}

opaque! { [K, V] Node<K, V>, "Node"; }

impl<K: Copy, V: Copy> Clone for Node<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Copy, V: Copy> Copy for Node<K, V> {}

impl<K: Copy, V: Copy> Node<K, V> {
    /// # Safety
    ///
    /// It is not the first of a tree.
    unsafe fn entry(&self) -> (&K, &V) {
        // SAFETY: in all nodes but the first of a tree, which this is not (contract of this
        // function), key and value are written.
        unsafe { (self.key.assume_init_ref(), self.value.assume_init_ref()) }
    }
}

/// The position of a link: in a node, on one side.
struct Edge<K, V> {
    above: Link<Node<K, V>>,
    side: usize,
    /// What it leads to.
    node: Link<Node<K, V>>,
}

/// The link that leads to the key, or would.
///
/// # Safety
///
/// In a session, as of this module.
#[inline]
unsafe fn find<K: Copy + Ord, V: Copy, S: RawSession>(
    session: &S,
    root: Link<Node<K, V>>,
    key: &K,
) -> Edge<K, V> {
    // SAFETY: session and root are there (contract of this function), and links that a session has
    // found lead to nodes that stay until its end; all but the first have keys.
    unsafe {
        let node = (*session.deref(root)).below[RIGHT];
        let mut edge = Edge { above: root, side: RIGHT, node };
        while !edge.node.is_null() {
            let this = &*session.deref(edge.node);
            hint::unforeseen_branch();
            let side = match key.cmp(this.entry().0) {
                Ordering::Equal => break,
                Ordering::Less => LEFT,
                Ordering::Greater => RIGHT,
            };
            edge = Edge { above: edge.node, side, node: this.below[side] };
        }
        edge
    }
}

/// The smallest node on the right side of a node that has two sides.
///
/// # Safety
///
/// In a session, as of this module.
unsafe fn successor<K: Copy, V: Copy, S: RawSession>(
    session: &S,
    node: Link<Node<K, V>>,
) -> Edge<K, V> {
    // SAFETY: session and node are there (contract of this function), and links that a session has
    // found lead to nodes that stay until its end. The node has a right child.
    unsafe {
        let right = (*session.deref(node)).below[RIGHT];
        let mut edge = Edge { above: node, side: RIGHT, node: right };
        loop {
            let left = (*session.deref(edge.node)).below[LEFT];
            if left.is_null() {
                return edge;
            }
            edge = Edge { above: edge.node, side: LEFT, node: left };
        }
    }
}

/// Removes a node with at most one child: that child takes its position. Steps that may fail come
/// first: either both nodes are locked, or nothing has changed.
///
/// # Safety
///
/// In a session, as of this module.
unsafe fn unlink<K: Copy, V: Copy, S: RawSession>(
    session: &mut S,
    edge: &Edge<K, V>,
) -> Result<(), Conflict> {
    // SAFETY: session and position are valid (contract of this function). After the commit nothing
    // leads to the freed node: it and its parent are locked.
    unsafe {
        let above = session.try_lock(edge.above)?;
        session.free(edge.node)?;
        let [left, right] = (*session.deref(edge.node)).below;
        (*above).below[edge.side] = if left.is_null() { right } else { left };
        Ok(())
    }
}

/// A binary search tree.
#[derive(Debug)]
pub struct Search;

impl Shape for Search {
    type Node<K: Copy, V: Copy> = Node<K, V>;

    const VIEW: View = View::Snapshot;

    fn first<K: Copy, V: Copy>() -> Node<K, V> {
        let below = [Link::NULL; 2];
        Node { below, key: MaybeUninit::uninit(), value: MaybeUninit::uninit() }
    }

    #[inline]
    unsafe fn get<K: Copy + Ord, V: Copy, S: RawSession>(
        session: &S,
        root: Link<Node<K, V>>,
        key: &K,
    ) -> Option<V> {
        // SAFETY: session and root are there (contract of this function), and links that a session
        // has found lead to nodes that stay until its end; all but the first have keys and values.
        unsafe {
            let node = find(session, root, key).node;
            (!node.is_null()).then(|| *(*session.deref(node)).entry().1)
        }
    }

    #[inline]
    unsafe fn insert<K: Copy + Ord, V: Copy, S: RawSession>(
        session: &mut S,
        root: Link<Node<K, V>>,
        key: K,
        value: V,
        keep: bool,
    ) -> Result<Option<V>, Conflict> {
        // SAFETY: session and root are there (contract of this function), and links that a session
        // has found lead to nodes that stay until its end; all but the first have keys and values.
        unsafe {
            let edge = find(session, root, &key);
            if edge.node.is_null() {
                let above = session.try_lock(edge.above)?;
                let (key, value) = (MaybeUninit::new(key), MaybeUninit::new(value));
                let below = [Link::NULL; 2];
                (*above).below[edge.side] = session.alloc(Node { below, key, value });
                return Ok(None);
            }
            if keep {
                return Ok(Some(*(*session.deref(edge.node)).entry().1));
            }
            let node = &mut *session.try_lock(edge.node)?;
            Ok(Some(core::mem::replace(&mut node.value, MaybeUninit::new(value)).assume_init()))
        }
    }

    #[inline]
    unsafe fn remove<K: Copy + Ord, V: Copy, S: RawSession>(
        session: &mut S,
        root: Link<Node<K, V>>,
        key: &K,
    ) -> Result<Option<V>, Conflict> {
        // SAFETY: session and root are there (contract of this function), and links that a session
        // has found lead to nodes that stay until its end; all but the first have keys and values.
        // `upper` is this session's copy, and no other reference to it is used: `unlink` may lock
        // the same node, but then changes another field.
        unsafe {
            let edge = find(session, root, key);
            if edge.node.is_null() {
                return Ok(None);
            }
            let node = *session.deref(edge.node);
            if node.below.iter().all(|below| !below.is_null()) {
                let next = successor(session, edge.node);
                let upper = session.try_lock(edge.node)?;
                unlink(session, &next)?;
                let heir = *session.deref(next.node);
                ((*upper).key, (*upper).value) = (heir.key, heir.value);
            } else {
                unlink(session, &edge)?;
            }
            Ok(Some(node.value.assume_init()))
        }
    }

    unsafe fn visit<K: Copy + Ord, V: Copy, S: RawSession>(
        session: &S,
        root: Link<Node<K, V>>,
        from: Option<&K>,
        mut f: impl FnMut(&K, &V) -> bool,
    ) {
        // SAFETY: session and root are there (contract of this function), and links that a session
        // has found lead to nodes that stay until its end; all but the first have keys and values.
        unsafe {
            // The nodes that come next, whose left subtrees are done or skipped. The next node is
            // the last of the list.
            let mut path = Vec::new();
            let mut node = (*session.deref(root)).below[RIGHT];
            loop {
                while !node.is_null() {
                    let this = &*session.deref(node);
                    let is_before = from.is_some_and(|from| this.entry().0 < from);
                    node = if is_before {
                        this.below[RIGHT]
                    } else {
                        path.push(this);
                        this.below[LEFT]
                    };
                }
                let Some(next) = path.pop() else { return };
                let (key, value) = next.entry();
                if !f(key, value) {
                    return;
                }
                node = next.below[RIGHT];
            }
        }
    }
}

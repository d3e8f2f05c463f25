//! A sorted chain of nodes, read and changed in sessions.
//!
//! # Idea
//!
//! It begins with a node without a key, so each key has a node before it. All functions are to be
//! called in a session of the domain to which the chain belongs.
//!
//! An operation on one key reads the latest version of each node, and then locks the node before
//! the key's position. If that node was not freed and its link is unchanged, the position is valid.
//! So the session needs no time, and a walk may read nodes that are removed meanwhile, as under
//! RCU. In a transaction on several keys the session sees one moment, and the same checks hold.
//!
//! # Source
//!
//! This is the sorted list with which A. Matveev et al. demonstrate sessions ("Read-Log-Update",
//! SOSP 2015), and J. Kim et al. versions ("MV-RLU", ASPLOS 2019). Our own part: an operation on
//! one key walks over the latest versions, and then validates its position.
//!
//! # Memory order
//!
//! The order is that of the domain's sessions: only results of [`deref`](RawSession::deref) and
//! copies by [`try_lock`](RawSession::try_lock) are shared here.
//!
//! # Cost
//!
//! Finding a key's position takes one `deref` for each smaller key; an update locks and copies one
//! node, a removal two.
//!
//! # When not to use it
//!
//! With more than some hundred keys, except as the buckets of a hash table.

use core::mem::MaybeUninit;

use super::Shape;
use crate::session::{Conflict, Link, RawSession, View};

/// A node; all nodes but the first one of a chain have a key and a value.
pub struct Node<K, V> {
    next: Link<Node<K, V>>,
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

/// The nodes between which a key is or would be.
struct Window<K, V> {
    /// The last node before it.
    before: Link<Node<K, V>>,
    /// The first node at or after the key, if there is one.
    node: Link<Node<K, V>>,
    /// The value, if the key is there.
    value: Option<V>,
}

impl<K: Copy, V: Copy> Node<K, V> {
    /// # Safety
    ///
    /// It is not the first of a chain.
    unsafe fn entry(&self) -> (&K, &V) {
        // SAFETY: in all nodes but the first of a chain, which this is not (contract of this
        // function), key and value are written.
        unsafe { (self.key.assume_init_ref(), self.value.assume_init_ref()) }
    }
}

/// # Safety
///
/// In a session, as of this module.
#[inline]
unsafe fn find<K: Copy + Ord, V: Copy, S: RawSession>(
    session: &S,
    root: Link<Node<K, V>>,
    key: &K,
) -> Window<K, V> {
    let mut before = root;
    // SAFETY: session and root are there (contract of this function), and links that a session has
    // found lead to nodes that stay until its end; all but the first have keys.
    unsafe {
        let mut node = (*session.deref(root)).next;
        while !node.is_null() {
            let this = &*session.deref(node);
            let (found, value) = this.entry();
            if found >= key {
                let value = (found == key).then_some(*value);
                return Window { before, node, value };
            }
            before = node;
            node = this.next;
        }
    }
    Window { before, node: Link::NULL, value: None }
}

/// A sorted chain.
#[derive(Debug)]
pub struct Chain;

impl Shape for Chain {
    type Node<K: Copy, V: Copy> = Node<K, V>;

    const VIEW: View = View::Latest;

    fn first<K: Copy, V: Copy>() -> Node<K, V> {
        Node { next: Link::NULL, key: MaybeUninit::uninit(), value: MaybeUninit::uninit() }
    }

    #[inline]
    unsafe fn get<K: Copy + Ord, V: Copy, S: RawSession>(
        session: &S,
        root: Link<Node<K, V>>,
        key: &K,
    ) -> Option<V> {
        // SAFETY: the session is one of this view or a snapshot, and the root is of this shape
        // (contract of this function), as `find` asks.
        unsafe { find(session, root, key) }.value
    }

    #[inline]
    unsafe fn insert<K: Copy + Ord, V: Copy, S: RawSession>(
        session: &mut S,
        root: Link<Node<K, V>>,
        key: K,
        value: V,
        keep: bool,
    ) -> Result<Option<V>, Conflict> {
        // SAFETY: session and root are valid (contract of this function), and links that a session
        // has found lead to nodes that stay until its end. Nodes with keys have values, too.
        unsafe {
            let window = find(session, root, &key);
            if window.value.is_some() {
                if keep {
                    return Ok(window.value);
                }
                // If it can be locked, it was not removed.
                let node = &mut *session.try_lock(window.node)?;
                return Ok(Some(
                    core::mem::replace(&mut node.value, MaybeUninit::new(value)).assume_init(),
                ));
            }
            let before = session.try_lock(window.before)?;
            if (*before).next != window.node {
                return Err(Conflict::Retry);
            }
            let node = Node {
                next: window.node,
                key: MaybeUninit::new(key),
                value: MaybeUninit::new(value),
            };
            (*before).next = session.alloc(node);
            Ok(None)
        }
    }

    #[inline]
    unsafe fn remove<K: Copy + Ord, V: Copy, S: RawSession>(
        session: &mut S,
        root: Link<Node<K, V>>,
        key: &K,
    ) -> Result<Option<V>, Conflict> {
        // SAFETY: session and root are there (contract of this function), and links that a session
        // has found lead to nodes that stay until its end. After the commit nothing leads to the
        // freed node: it and its predecessor are locked.
        unsafe {
            let window = find(session, root, key);
            if window.value.is_none() {
                return Ok(None);
            }
            let before = session.try_lock(window.before)?;
            if (*before).next != window.node {
                return Err(Conflict::Retry);
            }
            session.free(window.node)?;
            let node = *session.deref(window.node);
            (*before).next = node.next;
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
        // has found lead to nodes that stay until its end; all but the first have keys.
        unsafe {
            let mut node = match from {
                Some(key) => find(session, root, key).node,
                None => (*session.deref(root)).next,
            };
            while !node.is_null() {
                let this = &*session.deref(node);
                let (key, value) = this.entry();
                if !f(key, value) {
                    return;
                }
                node = this.next;
            }
        }
    }
}

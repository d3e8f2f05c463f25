//! A sorted chain of nodes that is read without a lock, and written by one thread at a time.
//!
//! Readers rely on this: a node's link changes only while the node can be reached. The link of a
//! removed node leads to the nodes that were there at the removal. A thread at that node arrived
//! there before the removal. So each node that a reader finds or misses was present or absent at
//! some moment of its call.
//!
//! The last change of a link is its mark, which says that the node is being removed. Only writers
//! need it; readers ignore it.

use core::ptr::null_mut;

use crate::RawLock;
use crate::collections::mark::{followed, marked};
use crate::exhaust::exhaust;
use crate::lock::Held;
use crate::reclaim::{Guard, UnpublishedNode, end_with_structure};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{mutation, order};

/// The chain. Its sections are those of one domain, which manages its nodes and is dropped later.
///
/// Invariant: the links from `head` lead through that domain's nodes, in ascending order of their
/// keys, to null. These nodes have no marks, except for one that a writer is removing.
pub(super) struct Chain<K, V> {
    head: AtomicPtr<Node<K, V>>,
}

pub(super) struct Node<K, V> {
    /// The next node. If this node is removed, the link has a mark, and does not change any more.
    next: AtomicPtr<Node<K, V>>,
    key: K,
    value: V,
}

/// Where a key is, or would be.
struct Window<'g, K, V> {
    /// The link that leads there.
    link: &'g AtomicPtr<Node<K, V>>,
    /// The first node that is not before the key; may be null.
    node: *mut Node<K, V>,
    /// Whether that has the key.
    found: bool,
}

// SAFETY: the chain owns its nodes, which any thread may drop with it (`Send`); threads that read
// share their contents (`Sync`).
unsafe impl<K: Send + Sync, V: Send + Sync> Send for Chain<K, V> {}
// SAFETY: threads share the contents of nodes (`Sync`), and one may drop what another has inserted
// (`Send`); links are atomic.
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for Chain<K, V> {}

impl<K, V> Chain<K, V> {
    pub fn new() -> Self {
        Self { head: AtomicPtr::new(null_mut()) }
    }
}

impl<K: Ord, V> Chain<K, V> {
    #[inline]
    fn find<'g>(&'g self, key: &K, _guard: &'g Guard) -> Window<'g, K, V> {
        let mut link = &self.head;
        loop {
            // Acquire: partner of the Releases in `lead_to` and `mark`.
            let node = followed(link.load(order!(Acquire, "chain-walk")));
            // SAFETY: null, or a node to which a link of the chain led in this section: removed
            // nodes are retired, and not dropped before the section's end.
            let Some(there) = (unsafe { node.as_ref() }) else {
                return Window { link, node, found: false };
            };
            // The test for equality comes last: each step of a walk costs one comparison.
            if there.key >= *key {
                return Window { link, node, found: there.key == *key };
            }
            link = &there.next;
        }
    }

    /// What `f` makes of the key's value.
    #[inline]
    pub fn read<R>(&self, key: &K, guard: &Guard, f: impl FnOnce(&V) -> R) -> Option<R> {
        self.find(key, guard).there().map(|node| f(&node.value))
    }

    /// The key's position, for the writer; the position existed before the thread became the
    /// writer.
    fn find_again<'g>(
        &'g self,
        window: Window<'g, K, V>,
        key: &K,
        guard: &'g Guard,
    ) -> Window<'g, K, V> {
        if window.holds() || mutation!("chain-trusts") { window } else { self.find(key, guard) }
    }

    /// Adds a key if it is missing; returns whether it was.
    pub fn insert_new<L: RawLock>(&self, lock: &L, key: K, value: V, guard: &Guard) -> bool {
        let window = self.find(&key, guard);
        if window.found {
            return false;
        }
        let (node, mut queue) = (guard.node(Node::new(key, value)), L::Node::default());
        let _held = Held::new(lock, &mut queue);
        let window = self.find_again(window, &node.key, guard);
        if !window.found {
            window.put_in(node, window.node);
        }
        !window.found
    }
}

impl<K: Ord + Send, V: Clone + Send> Chain<K, V> {
    /// Gives a key a value; returns the key's old value.
    pub fn insert<L: RawLock>(&self, lock: &L, key: K, value: V, guard: &Guard) -> Option<V> {
        let window = self.find(&key, guard);
        let (node, mut queue) = (guard.node(Node::new(key, value)), L::Node::default());
        let held = Held::new(lock, &mut queue);
        let window = self.find_again(window, &node.key, guard);
        let Some(old) = window.there() else {
            window.put_in(node, window.node);
            return None;
        };
        let value = old.value.clone();
        window.put_in(node, old.mark());
        drop(held);
        // SAFETY: `Guard::node` of this domain has made the node. The only writer has marked it and
        // replaced it in the link, so it is retired once.
        unsafe { guard.retire_node(window.node) };
        Some(value)
    }

    /// Takes a key out; returns its value.
    pub fn remove<L: RawLock>(&self, lock: &L, key: &K, guard: &Guard) -> Option<V> {
        let window = self.find(key, guard);
        window.there()?;
        let mut queue = L::Node::default();
        let held = Held::new(lock, &mut queue);
        let window = self.find_again(window, key, guard);
        let old = window.there()?;
        let value = old.value.clone();
        window.lead_to(old.mark());
        drop(held);
        // SAFETY: `Guard::node` of this domain has made the node. The only writer has marked it and
        // unlinked it, so it is retired once.
        unsafe { guard.retire_node(window.node) };
        Some(value)
    }
}

impl<'g, K, V> Window<'g, K, V> {
    /// The node that has the key.
    #[inline]
    fn there(&self) -> Option<&'g Node<K, V>> {
        // SAFETY: the node is not null, and was found in a section that lasts for `'g`; it is not
        // dropped before the section's end.
        self.found.then(|| unsafe { &*self.node })
    }

    /// Whether the position is still valid: a marked link is not. The caller is the writer.
    fn holds(&self) -> bool {
        self.link.load(Ordering::Relaxed) == self.node // Relaxed: written by writers, of which this is the only one
    }

    /// Has the link lead to this node.
    fn lead_to(&self, node: *mut Node<K, V>) {
        // Release: partner of the Acquire in `find`: a thread that finds the node sees its
        // contents.
        self.link.store(node, order!(Release, "chain-link"));
    }

    /// Inserts a node before `next`. The caller is the writer.
    fn put_in(&self, node: UnpublishedNode<Node<K, V>>, next: *mut Node<K, V>) {
        node.next.store(next, Ordering::Relaxed); // Relaxed: released by the line below
        self.lead_to(node.into_raw().as_ptr());
    }
}

impl<K, V> Node<K, V> {
    fn new(key: K, value: V) -> Self {
        Self { next: AtomicPtr::new(null_mut()), key, value }
    }

    /// Marks the node as being removed; returns its successor. The caller is the writer.
    fn mark(&self) -> *mut Self {
        let next = self.next.load(Ordering::Relaxed); // Relaxed: as in `holds`
        // Release: partner of the Acquire in `find`, for a thread that follows this link to a node
        // that another writer has inserted.
        self.next.store(marked(next), order!(Release, "chain-mark"));
        next
    }
}

impl<K, V> Drop for Chain<K, V> {
    fn drop(&mut self) {
        // Relaxed, both: no other thread has the chain.
        let mut node = self.head.load(Ordering::Relaxed);
        exhaust(|| {
            // SAFETY: null, or a node of this chain, which no other thread has; the domain is
            // dropped later. `node` has advanced before this one is dropped.
            let Some(this) = (unsafe { node.as_ref() }) else { return false };
            let this = core::mem::replace(&mut node, this.next.load(Ordering::Relaxed));
            // SAFETY: null, or a node of this chain, which no other thread has; the domain is
            // dropped later. `node` has advanced before this one is dropped.
            unsafe { end_with_structure(this) };
            true
        });
    }
}

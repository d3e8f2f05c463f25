//! A sorted chain of nodes that is read without a lock, and written by one thread at a time.
//!
//! What readers rely on: a node's link changes only while the node can be reached. So whoever stands on a node that was
//! taken out finds behind it what was there when it was taken out, which is after it got there: everything that a reader finds
//! or misses was there, or was not, at some moment of its call.

use alloc::boxed::Box;
use core::ptr::null_mut;

use crate::RawLock;
use crate::lock::Held;
use crate::reclaim::Guard;
use crate::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::sync::{mutation, order};

/// The chain.
///
/// Invariant: the links from `head` lead through nodes that came from `Box`, in ascending order of their keys, to null.
pub(in crate::collections) struct Chain<K, V> {
    head: AtomicPtr<Node<K, V>>,
}

struct Node<K, V> {
    next: AtomicPtr<Node<K, V>>,
    /// Whether it was taken out. Read and written by writers.
    removed: AtomicBool,
    key: K,
    value: V,
}

/// Where a key is, or would be.
struct Place<'g, K, V> {
    /// The link that leads there.
    link: &'g AtomicPtr<Node<K, V>>,
    /// The node of that link; none at the front.
    before: Option<&'g Node<K, V>>,
    /// The first node that is not before it; may be null.
    node: *mut Node<K, V>,
    /// Whether that has the key.
    found: bool,
}

// SAFETY: the chain owns its nodes; threads that read share them, and any may drop one.
unsafe impl<K: Send + Sync, V: Send + Sync> Send for Chain<K, V> {}
// SAFETY: as above.
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for Chain<K, V> {}

impl<K, V> Chain<K, V> {
    pub fn new() -> Self {
        Self { head: AtomicPtr::new(null_mut()) }
    }
}

impl<K: Ord, V> Chain<K, V> {
    /// The guard is of the domain in which this chain's nodes are retired.
    #[inline]
    fn find<'g>(&'g self, key: &K, _guard: &'g Guard) -> Place<'g, K, V> {
        let (mut link, mut before) = (&self.head, None);
        loop {
            // Acquire: partner of the Release in `lead_to`.
            let node = link.load(order!(Acquire, "chain-walk"));
            // SAFETY: null, or a node that could be reached during the section, and is not dropped before it ends.
            let Some(there) = (unsafe { node.as_ref() }) else {
                return Place { link, before, node, found: false };
            };
            // Equality last: each step of a walk costs one comparison.
            if there.key >= *key {
                return Place { link, before, node, found: there.key == *key };
            }
            (link, before) = (&there.next, Some(there));
        }
    }

    /// What `f` makes of the key's value.
    #[inline]
    pub fn read<R>(&self, key: &K, guard: &Guard, f: impl FnOnce(&V) -> R) -> Option<R> {
        self.find(key, guard).there().map(|node| f(&node.value))
    }

    /// The key's place, for the writer; it was there before it was the writer.
    fn find_again<'g>(
        &'g self,
        place: Place<'g, K, V>,
        key: &K,
        guard: &'g Guard,
    ) -> Place<'g, K, V> {
        if place.holds() || mutation!("chain-trusts") { place } else { self.find(key, guard) }
    }

    /// Adds a key if it is not there; says whether it was not.
    pub fn insert_new<L: RawLock>(&self, lock: &L, key: K, value: V, guard: &Guard) -> bool {
        let place = self.find(&key, guard);
        if place.found {
            return false;
        }
        let (node, mut queue) = (Node::boxed(key, value), L::Node::default());
        let _held = Held::new(lock, &mut queue);
        let place = self.find_again(place, &node.key, guard);
        if !place.found {
            place.put_in(node, place.node);
        }
        !place.found
    }
}

impl<K: Ord + Send, V: Clone + Send> Chain<K, V> {
    /// Gives a key a value; returns the one it had.
    pub fn insert<L: RawLock>(&self, lock: &L, key: K, value: V, guard: &Guard) -> Option<V> {
        let place = self.find(&key, guard);
        let (node, mut queue) = (Node::boxed(key, value), L::Node::default());
        let held = Held::new(lock, &mut queue);
        let place = self.find_again(place, &node.key, guard);
        let Some(old) = place.there() else {
            place.put_in(node, place.node);
            return None;
        };
        let value = old.value.clone();
        old.removed.store(true, Ordering::Relaxed); // Relaxed: for writers
        // Relaxed: changed by writers only.
        place.put_in(node, old.next.load(Ordering::Relaxed));
        drop(held);
        // SAFETY: from `Box`, and the new node is in its place.
        unsafe { guard.retire(place.node) };
        Some(value)
    }

    /// Takes a key out; returns its value.
    pub fn remove<L: RawLock>(&self, lock: &L, key: &K, guard: &Guard) -> Option<V> {
        let place = self.find(key, guard);
        place.there()?;
        let mut queue = L::Node::default();
        let held = Held::new(lock, &mut queue);
        let place = self.find_again(place, key, guard);
        let old = place.there()?;
        let value = old.value.clone();
        // Relaxed, both: for writers.
        old.removed.store(true, Ordering::Relaxed);
        place.lead_to(old.next.load(Ordering::Relaxed));
        drop(held);
        // SAFETY: from `Box`, and the link leads past it.
        unsafe { guard.retire(place.node) };
        Some(value)
    }
}

impl<'g, K, V> Place<'g, K, V> {
    /// The node that has the key.
    #[inline]
    fn there(&self) -> Option<&'g Node<K, V>> {
        // SAFETY: found, and so not null, and there as long as the section.
        self.found.then(|| unsafe { &*self.node })
    }

    /// Whether it is still what it was. The caller is the writer.
    fn holds(&self) -> bool {
        // Relaxed, both: written by writers, of which this is the only one.
        let removed = self.before.is_some_and(|before| before.removed.load(Ordering::Relaxed));
        !removed && self.link.load(Ordering::Relaxed) == self.node
    }

    /// Has the link lead to this node.
    fn lead_to(&self, node: *mut Node<K, V>) {
        // Release: partner of the Acquire in `find`: who finds the node finds what is in it.
        self.link.store(node, order!(Release, "chain-link"));
    }

    /// Puts a node in, in front of `next`. The caller is the writer.
    fn put_in(&self, node: Box<Node<K, V>>, next: *mut Node<K, V>) {
        node.next.store(next, Ordering::Relaxed); // Relaxed: released by the line below
        self.lead_to(Box::into_raw(node));
    }
}

impl<K, V> Node<K, V> {
    fn boxed(key: K, value: V) -> Box<Self> {
        let next = AtomicPtr::new(null_mut());
        Box::new(Self { next, removed: AtomicBool::new(false), key, value })
    }
}

impl<K, V> Drop for Chain<K, V> {
    fn drop(&mut self) {
        // Relaxed, both: nobody else has the chain.
        let mut node = self.head.load(Ordering::Relaxed);
        while !node.is_null() {
            // SAFETY: from `Box`, and nobody else's now.
            node = unsafe { Box::from_raw(node) }.next.load(Ordering::Relaxed);
        }
    }
}

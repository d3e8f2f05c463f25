//! The links of a list without locks; see [`harris`](super::harris) for the algorithm.
//!
//! The caller decides where a key belongs: by its order, as in a set, or anywhere.

use core::ptr::{self, NonNull, null_mut};

use crate::collections::mark::{followed, is_marked, marked, unmarked};
use crate::exhaust::exhaust;
use crate::reclaim::{Guard, end_with_structure};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{const_new, mutation, order};

/// A list without locks. Its sections are those of one domain, which manages its nodes and is
/// dropped later.
///
/// Invariant: the links from `head`, without their marks, lead through that domain's nodes to null.
/// `head` has no mark.
pub(in crate::collections) struct Links<K> {
    head: AtomicPtr<Node<K>>,
}

pub(in crate::collections) struct Node<K> {
    /// The next node. If this node is removed, the link has a mark, and does not change any more.
    next: AtomicPtr<Node<K>>,
    key: K,
}

/// Where a key is, or would be.
struct Window<'g, K> {
    /// The link that leads there.
    link: &'g AtomicPtr<Node<K>>,
    /// The first node that is not before the key; may be null.
    node: *mut Node<K>,
    /// Whether that has the key.
    found: bool,
}

// SAFETY: the list owns its nodes, which its end drops in any thread (`K: Send`); threads that read
// share the keys (`K: Sync`).
unsafe impl<K: Send + Sync> Send for Links<K> {}
// SAFETY: threads share keys (`K: Sync`), and one may drop what another has inserted (`K: Send`);
// links are atomic.
unsafe impl<K: Send + Sync> Sync for Links<K> {}

impl<K> Links<K> {
    const_new! {
        /// Creates one without keys.
        pub fn new() -> Self {
            Self { head: AtomicPtr::new(null_mut()) }
        }
    }
}

impl<K: Send> Links<K> {
    /// Changes a link to skip the nodes from `first` up to `end`, all of which are marked; returns
    /// whether the link still led to `first`.
    #[cold]
    fn take_away(
        link: &AtomicPtr<Node<K>>,
        first: *mut Node<K>,
        end: *mut Node<K>,
        guard: &Guard,
    ) -> bool {
        // Release: partner of the Acquires that follow the link. Relaxed on failure: everything is
        // read again.
        let (done, failed) = (order!(Release, "harris-unlink"), Ordering::Relaxed);
        if link.compare_exchange(first, end, done, failed).is_err() {
            return false;
        }
        let mut node = first;
        while node != end {
            // Relaxed: the link is marked, so it still has the value read before. SAFETY: a link
            // led to the node in this section, so it is not dropped before the section's end.
            let next = unmarked(unsafe { &*node }.next.load(Ordering::Relaxed));
            // SAFETY: `Guard::node` of this domain has made the node, which is marked. The link
            // skips it, and of the threads that tried only this one has changed the link, so it is
            // retired once.
            unsafe { guard.retire_node(node) };
            node = next;
        }
        true
    }
}

/// A set: nodes are in ascending order of their keys, and each key is in one node.
impl<K: Ord + Send> Links<K> {
    #[inline]
    pub fn contains(&self, key: &K, _guard: &Guard) -> bool {
        // Acquire: partner of the Releases of links.
        let mut link = self.head.load(order!(Acquire, "harris-head"));
        // SAFETY: null, or a node to which a link of the list led in this section: removed nodes
        // are retired, and not dropped before the section's end.
        while let Some(node) = unsafe { link.as_ref() } {
            // Acquire: partner of the Releases of links.
            let next = node.next.load(order!(Acquire, "harris-walk"));
            if node.key >= *key {
                return node.key == *key && !is_marked(next);
            }
            link = followed(next);
        }
        false
    }

    /// The position of a key. Marked nodes are unlinked there.
    fn find<'g>(&'g self, key: &K, guard: &'g Guard) -> Window<'g, K> {
        loop {
            if let Some(window) = self.try_find(key, guard) {
                return window;
            }
        }
    }

    /// The same, unless another thread changes the place meanwhile.
    fn try_find<'g>(&'g self, key: &K, guard: &'g Guard) -> Option<Window<'g, K>> {
        let mut link = &self.head;
        // Acquire: partner of the Releases of links.
        let mut first = link.load(order!(Acquire, "harris-find-head"));
        let mut node = first;
        let found = loop {
            // SAFETY: null, or a node to which a link of the list led in this section: removed
            // nodes are retired, and not dropped before the section's end.
            let Some(there) = (unsafe { node.as_ref() }) else { break false };
            // Acquire: partner of the Releases of links.
            let next = there.next.load(order!(Acquire, "harris-find-walk"));
            if is_marked(next) {
                node = unmarked(next);
            } else if there.key < *key {
                (link, first, node) = (&there.next, next, next);
            } else {
                break there.key == *key;
            }
        };
        let clean = first == node || Self::take_away(link, first, node, guard);
        clean.then_some(Window { link, node, found })
    }

    /// Inserts a key; returns whether it was not there.
    pub fn insert(&self, key: K, guard: &Guard) -> bool {
        let mut window = self.find(&key, guard);
        if window.found {
            return false;
        }
        let new = guard.node(Node { next: AtomicPtr::new(window.node), key });
        loop {
            // Release: partner of the Acquires that follow the link. Relaxed on failure: everything
            // is read again.
            let (done, failed) = (order!(Release, "harris-link"), Ordering::Relaxed);
            if window.link.compare_exchange(window.node, new.as_ptr(), done, failed).is_ok() {
                new.into_raw();
                return true;
            }
            window = self.find(&new.key, guard);
            if window.found {
                return false;
            }
            new.next.store(window.node, Ordering::Relaxed); // Relaxed: released by the swap above
        }
    }

    /// Takes a key out; returns whether it was there.
    pub fn remove(&self, key: &K, guard: &Guard) -> bool {
        loop {
            let window = self.find(key, guard);
            if !window.found {
                return false;
            }
            // SAFETY: the node is not null, and was found in this section; it is not dropped before
            // the section's end.
            let node = unsafe { &*window.node };
            // Acquire: partner of the Releases that store links: the exchange below passes it on.
            let next = node.next.load(order!(Acquire, "harris-remove"));
            if is_marked(next) {
                continue;
            }
            // Relaxed: the link's target does not change, and a read-modify-write passes on what
            // was released with it. On failure, everything is read again.
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            let mark = if mutation!("harris-unmarked") { next } else { marked(next) };
            if node.next.compare_exchange(next, mark, done, failed).is_err() {
                continue;
            }
            if !Self::take_away(window.link, window.node, next, guard) {
                self.find(key, guard); // takes it away
            }
            return true;
        }
    }
}

/// A collection: nodes are in the reverse order of their insertion, and identified by their
/// addresses.
impl<K: Send> Links<K> {
    /// Inserts a key at the front; returns its node, which stays until it is taken.
    pub fn push(&self, key: K, guard: &Guard) -> NonNull<Node<K>> {
        // Relaxed, here and on failure: reads of the node come after an Acquire of the head.
        let mut first = self.head.load(Ordering::Relaxed);
        let new = guard.node(Node { next: AtomicPtr::new(first), key });
        loop {
            // AcqRel: partner of the Acquires of the head, and of itself: a thread that sees the
            // node sees the nodes behind it.
            let (done, failed) = (order!(AcqRel, "harris-push"), Ordering::Relaxed);
            match self.head.compare_exchange_weak(first, new.as_ptr(), done, failed) {
                Ok(_) => return new.into_raw(),
                Err(changed) => first = changed,
            }
            new.next.store(first, Ordering::Relaxed); // Relaxed: released by the swap above
        }
    }

    /// Takes a node out.
    ///
    /// # Safety
    ///
    /// The node was pushed on this list, and is taken once.
    pub unsafe fn take(&self, node: NonNull<Node<K>>, guard: &Guard) {
        // SAFETY: the node was pushed on this list, and only this call marks it (contract of this
        // function): it is not retired before, nor dropped before the section's end.
        let own = unsafe { node.as_ref() };
        // Relaxed, here and below: the compare-and-swap decides.
        let mut next = own.next.load(Ordering::Relaxed);
        debug_assert!(!is_marked(next), "a node is taken twice");
        loop {
            // Relaxed: a read-modify-write passes on what was released with the link.
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            match own.next.compare_exchange_weak(next, marked(next), done, failed) {
                Ok(_) => break,
                Err(changed) => next = changed,
            }
        }
        while !self.try_lead_past(node.as_ptr(), guard) {}
    }

    /// Unlinks a marked node, and the marked nodes beside it: the link before them then skips them.
    /// Returns whether no link leads to the node any more, whichever thread has done that.
    fn try_lead_past(&self, target: *mut Node<K>, guard: &Guard) -> bool {
        let mut link = &self.head;
        // Acquire: partner of the Releases of links.
        let mut first = link.load(order!(Acquire, "harris-past-head"));
        let (mut node, mut met) = (first, false);
        // SAFETY: null, or a node to which a link of the list led in this section: removed nodes
        // are retired, and not dropped before the section's end.
        while let Some(there) = unsafe { node.as_ref() } {
            met |= ptr::eq(there, target);
            // Relaxed: a node leads only to nodes that were pushed before it, and the pushing
            // thread had acquired those.
            let next = there.next.load(Ordering::Relaxed);
            if is_marked(next) {
                node = unmarked(next);
            } else if met {
                break;
            } else {
                (link, first, node) = (&there.next, next, next);
            }
        }
        !met || Self::take_away(link, first, node, guard)
    }

    /// Visits all keys that are in the list during the whole visit, and some of those that are
    /// inserted or removed meanwhile.
    pub fn visit(&self, _guard: &Guard, visit: &mut dyn FnMut(&K)) {
        // Acquire: partner of the Releases of links.
        let mut link = self.head.load(order!(Acquire, "harris-visit-head"));
        // SAFETY: null, or a node to which a link of the list led in this section: removed nodes
        // are retired, and not dropped before the section's end.
        while let Some(node) = unsafe { link.as_ref() } {
            // Relaxed: a node leads only to nodes that were pushed before it, and the pushing
            // thread had acquired those.
            let next = node.next.load(Ordering::Relaxed);
            if !is_marked(next) {
                visit(&node.key);
            }
            link = followed(next);
        }
    }
}

impl<K> Drop for Links<K> {
    fn drop(&mut self) {
        // Relaxed, both: no other thread has the list.
        let mut link = self.head.load(Ordering::Relaxed);
        exhaust(|| {
            let node = unmarked(link);
            // SAFETY: null, or a node of this list, which no other thread has; no link leads to
            // retired nodes. The domain is dropped later, and `link` has advanced before this node
            // is dropped.
            let Some(this) = (unsafe { node.as_ref() }) else { return false };
            link = this.next.load(Ordering::Relaxed);
            // SAFETY: null, or a node of this list, which no other thread has; no link leads to
            // retired nodes. The domain is dropped later, and `link` has advanced before this node
            // is dropped.
            unsafe { end_with_structure(node) };
            true
        });
    }
}

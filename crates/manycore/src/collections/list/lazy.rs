//! `lazy`: a sorted list with a lock in each node.
//!
//! # Idea
//!
//! A thread that changes the list finds the position without a lock, as readers do. It then locks
//! the node before it and, for a removal, the node itself. With the locks held it checks that the
//! position is still valid: the node before is not removed, and leads to the same node. If not, it
//! begins again. A node is *marked* before it is unlinked, and the mark is what removes the key:
//! readers, which take no lock, read it last.
//!
//! ```text
//!  remove 4:   3 --------> 4 --------> 6          3 ---------------------> 6
//!           locked      locked                 locked      4 (marked) --->
//! ```
//!
//! # Source
//!
//! S. Heller, M. Herlihy, V. Luchangco, M. Moir, W. Scherer and N. Shavit, "A lazy concurrent
//! list-based set algorithm", OPODIS 2005. There an insertion locks both neighbours. Locking the
//! node before is enough: a removal of the node behind needs that lock, too. The paper leaves
//! freeing to a garbage collector; here nodes are retired to a [domain](crate::reclaim).
//!
//! # Memory order
//!
//! A node is complete before a link leads to it (Release), and a thread that follows the link sees
//! that (Acquire). A mark is set before the node is unlinked; a thread that sees it sees all
//! earlier writes (Release, Acquire). Writers are ordered by the locks of the nodes that they
//! change. Locks are taken from front to back, so there is no deadlock.
//!
//! An insertion takes effect when the link leads to the node, a removal with the mark, and a
//! look-up that finds the key with its read of the mark. For a look-up that does not find the key
//! there are three cases. If the node with the last link that it read was not marked, it takes
//! effect at that read. If that node was marked, it takes effect when the node was marked: that was
//! after the look-up began, because the node's links have not changed since. If it found the key's
//! node marked, and the key was inserted again meanwhile, it takes effect just before that
//! insertion.
//!
//! # Cost
//!
//! A reader writes only its record. An insertion takes one lock, a removal two; other threads want
//! these only if they change a neighbour. There is a lock for each node: with `adaptive` a node is
//! 32 bytes larger than its contents. Nodes are managed as in
//! [`RcuList`](crate::collections::list::RcuList).
//!
//! # When not to use it
//!
//! For lists so short that all writers contend for one node anyway. For values that are replaced:
//! this is a set.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::null_mut;

use crate::exhaust::exhaust;
use crate::lock::Held;
use crate::reclaim::{Config, Domain, Epoch, Guard, Mode, end_with_structure};
use crate::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::sync::{mutation, order};
use crate::{ConcurrentSet, RawLock, SetHandle};

/// A sorted list with a lock in each node. `F` says when a thread [reports that its readers have
/// left](crate::reclaim::Mode).
///
/// Invariant: the links from `front` lead through the domain's nodes, in ascending order of their
/// keys, to null.
pub struct LazyList<K, L, F = Epoch> {
    front: Joint<K, L>,
    domain: Domain,
    _flavour: PhantomData<fn() -> F>,
}

/// What leads to the next node.
struct Joint<K, L> {
    /// Held by the thread that changes the other two.
    lock: L,
    /// Whether its node is taken out: then it does not change any more.
    marked: AtomicBool,
    next: AtomicPtr<Node<K, L>>,
}

struct Node<K, L> {
    joint: Joint<K, L>,
    key: K,
}

/// Where a key is, or would be.
struct Window<'g, K, L> {
    before: &'g Joint<K, L>,
    /// The first node that is not before the key; may be null.
    node: *mut Node<K, L>,
    /// Whether that has the key.
    found: bool,
}

// SAFETY: the list owns its nodes, which its end drops in any thread (`K: Send`); threads that read
// share the keys (`K: Sync`).
unsafe impl<K: Send + Sync, L: RawLock, F> Send for LazyList<K, L, F> {}
// SAFETY: threads share keys (`K: Sync`), and one may drop what another has inserted (`K: Send`);
// all else is atomic.
unsafe impl<K: Send + Sync, L: RawLock, F> Sync for LazyList<K, L, F> {}
// SAFETY: dropping a node drops its key, which any thread may do; the node does not own its link's
// target.
unsafe impl<K: Send, L: RawLock> Send for Node<K, L> {}

impl<K, L: RawLock> Joint<K, L> {
    fn new(next: *mut Node<K, L>) -> Self {
        Self { lock: L::new(), marked: AtomicBool::new(false), next: AtomicPtr::new(next) }
    }

    /// The caller has the lock.
    fn lead_to(&self, node: *mut Node<K, L>) {
        // Release: partner of the Acquire in `find`: a thread that finds the node sees its
        // contents.
        self.next.store(node, order!(Release, "lazy-link"));
    }
}

impl<K, L: RawLock, F> LazyList<K, L, F> {
    /// Creates one without keys; removed entries wait in a domain with this configuration.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            front: Joint::new(null_mut()),
            domain: Domain::of_nodes::<Node<K, L>>(config, 0),
            _flavour: PhantomData,
        }
    }

    /// The domain in which removed nodes wait until no reader can use them.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl<'g, K, L> Window<'g, K, L> {
    /// The node that has the key.
    fn there(&self) -> Option<&'g Node<K, L>> {
        // SAFETY: the node is not null, and was found in a section that lasts for `'g`; it is not
        // dropped before the section's end.
        self.found.then(|| unsafe { &*self.node })
    }

    /// Whether the key is in the list, as far as can be seen without a lock.
    fn is_there(&self) -> bool {
        // Acquire: partner of the Release in `remove`: a thread that does not find the key sees all
        // writes before its removal.
        let is_marked = |node: &Node<K, L>| node.joint.marked.load(order!(Acquire, "lazy-look"));
        self.there().is_some_and(|node| !is_marked(node))
    }

    /// Whether the position is still valid. The caller has the lock of the node before.
    fn holds(&self) -> bool {
        // Relaxed, both: changed with the lock held.
        let is_same = self.before.next.load(Ordering::Relaxed) == self.node;
        is_same && !self.before.marked.load(Ordering::Relaxed)
    }
}

impl<K: Ord + Send, L: RawLock, F> LazyList<K, L, F> {
    #[inline]
    fn find<'g>(&'g self, key: &K, _guard: &'g Guard) -> Window<'g, K, L> {
        let mut before = &self.front;
        loop {
            // Acquire: partner of the Releases of links.
            let node = before.next.load(order!(Acquire, "lazy-walk"));
            // SAFETY: null, or a node to which a link of the list led in this section: removed
            // nodes are retired, and not dropped before the section's end.
            let Some(there) = (unsafe { node.as_ref() }) else {
                return Window { before, node, found: false };
            };
            if there.key >= *key {
                return Window { before, node, found: there.key == *key };
            }
            before = &there.joint;
        }
    }

    fn contains(&self, key: &K, guard: &Guard) -> bool {
        self.find(key, guard).is_there()
    }

    fn insert(&self, key: K, guard: &Guard) -> bool {
        let mut window = self.find(&key, guard);
        if window.is_there() {
            return false;
        }
        let node = guard.node(Node { joint: Joint::new(null_mut()), key });
        loop {
            let mut queue = L::Node::default();
            let held = Held::new(&window.before.lock, &mut queue);
            if window.holds() {
                // While the lock is held, no thread removes the next node, because it is not
                // marked.
                if !window.found {
                    node.joint.next.store(window.node, Ordering::Relaxed); // Relaxed: released by the line below
                    window.before.lead_to(node.into_raw().as_ptr());
                }
                return !window.found;
            }
            drop(held);
            window = self.find(&node.key, guard);
            if window.is_there() {
                return false;
            }
        }
    }

    fn remove(&self, key: &K, guard: &Guard) -> bool {
        loop {
            let window = self.find(key, guard);
            let Some(node) = window.there().filter(|_| window.is_there()) else { return false };
            let (mut first, mut second) = <(L::Node, L::Node)>::default();
            let held = Held::new(&window.before.lock, &mut first);
            let both = (Held::new(&node.joint.lock, &mut second), held);
            if !window.holds() {
                continue;
            }
            if !mutation!("lazy-unmarked") {
                // Release: partner of the Acquire in `is_there`.
                node.joint.marked.store(true, order!(Release, "lazy-mark"));
            }
            // Relaxed: changed with the lock held.
            window.before.lead_to(node.joint.next.load(Ordering::Relaxed));
            drop(both);
            // SAFETY: `Guard::node` of this domain has made the node. This thread has unlinked it
            // with both locks held, and it was not marked before, so it is retired once.
            unsafe { guard.retire_node(window.node) };
            return true;
        }
    }
}

impl<K, L: RawLock, F> Default for LazyList<K, L, F> {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl<K, L, F> Drop for LazyList<K, L, F> {
    fn drop(&mut self) {
        // Relaxed, both: no other thread has the list.
        let mut node = self.front.next.load(Ordering::Relaxed);
        exhaust(|| {
            // SAFETY: `node` is null, or a node of this list that no other thread has, and no link
            // leads to retired nodes. The domain is dropped later, and `node` has advanced to the
            // next one before this one is freed.
            let Some(this) = (unsafe { node.as_ref() }) else { return false };
            let this = core::mem::replace(&mut node, this.joint.next.load(Ordering::Relaxed));
            // SAFETY: `node` is null, or a node of this list that no other thread has, and no link
            // leads to retired nodes. The domain is dropped later, and `node` has advanced to the
            // next one before this one is freed.
            unsafe { end_with_structure(this) };
            true
        });
    }
}

impl<K, L, F> fmt::Debug for LazyList<K, L, F> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("LazyList").field("domain", &self.domain).finish_non_exhaustive()
    }
}

/// A thread's access to a [`LazyList`].
pub struct LazyHandle<'a, K, L, F: Mode = Epoch> {
    list: &'a LazyList<K, L, F>,
    handle: F::Handle<'a>,
}

impl<K, L, F: Mode> fmt::Debug for LazyHandle<'_, K, L, F> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("LazyHandle").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl<K: Ord + Send + Sync, L: RawLock, F: Mode> ConcurrentSet<K> for LazyList<K, L, F> {
    type Handle<'a>
        = LazyHandle<'a, K, L, F>
    where
        Self: 'a;

    fn handle(&self) -> LazyHandle<'_, K, L, F> {
        LazyHandle { list: self, handle: F::register(&self.domain) }
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.domain.statistics(visit);
    }
}

impl<K: Ord + Send, L: RawLock, F: Mode> SetHandle<K> for LazyHandle<'_, K, L, F> {
    fn contains(&mut self, key: &K) -> bool {
        F::section(&mut self.handle, |guard| self.list.contains(key, guard))
    }

    fn insert(&mut self, key: K) -> bool {
        F::section(&mut self.handle, |guard| self.list.insert(key, guard))
    }

    fn remove(&mut self, key: &K) -> bool {
        F::section(&mut self.handle, |guard| self.list.remove(key, guard))
    }
}

//! `rcu`: a search tree that is read without a lock, with a lock in each node for writers.
//!
//! # Idea
//!
//! Readers walk down; the nodes that they use are not freed before they leave. A writer finds its
//! position as readers do, and locks the node above it. If that node is still in the tree and its
//! link is unchanged, the position is still valid. A new key becomes a leaf; a node with at most
//! one child is replaced by that child, by changing one link.
//!
//! A node with two children is replaced by the next larger key, its *heir*, which is at the end of
//! the left links of its right child. A reader on its way to the heir must not miss it. So nothing
//! moves. The nodes on that way are copied, without the heir, whose key is at the top of the copy,
//! and one link changes from the old to the new nodes. Old and new nodes share the subtrees below
//! them:
//!
//! ```text
//!        above                           above
//!          |                               |
//!       remove 4                           5'
//!       /      \                         /    \
//!      2        8           -->         2      8'           old: 4, 8, 6 and 5, as they were
//!     ...     /   \                    ...   /   \
//!            6     9                        6'    9
//!           / \                            / \
//!          5   7                        (5r)  7             5r: what was on the right of 5
//! ```
//!
//! # Source
//!
//! M. Arbel and H. Attiya, "Concurrent updates with RCU: search tree as an example", PODC 2014
//! (Citrus), for a search tree with a lock in each node and readers under RCU. There the heir is
//! moved. The thread that moves it waits for all readers meanwhile, with five locks held, and a
//! leaf's position needs a version, because a moved node has fewer keys below it than before.
//! Copying needs neither. It is from P. Kung and P. Lehman, "Concurrent manipulation of binary
//! search trees", TODS 1980, and A. Clements, M. F. Kaashoek and N. Zeldovich, "Scalable address
//! spaces using RCU balanced trees", ASPLOS 2012. The paper does not free nodes; here they are
//! retired to a [domain](crate::reclaim).
//!
//! # Memory order
//!
//! A node is complete before a link leads to it (Release), and a thread that follows the link sees
//! that (Acquire). Writers are ordered by the locks of the nodes that they change. A node's lock is
//! taken while that of the node above is held, so there is no deadlock.
//!
//! The links of a removed node do not change any more: they lead to the nodes that were there at
//! the removal. A thread at that node arrived there before the removal. So each node that a reader
//! finds or misses was present or absent at some moment of its call. While a node is in the tree,
//! the set of keys that belong below it only grows. So if a writer finds a node still in the tree,
//! and no child at the side to which its key belongs, then that is the key's position.
//!
//! # Cost
//!
//! A reader writes only its record. An insertion takes one lock, and a removal two. If the removed
//! node has two children, each node on the way to its successor costs a further lock, an allocation
//! and a retired node: that is one or two nodes, if keys come in random order. There is a lock for
//! each node: with `adaptive` a node is 40 bytes larger than its contents. Nodes are managed as in
//! [`RcuList`](crate::collections::list::RcuList).
//!
//! # When not to use it
//!
//! For keys that come in order, because the tree is not balanced. Where a thread must see several
//! keys as of one moment.

use alloc::vec::Vec;
use core::cmp;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::null_mut;

use crate::exhaust::exhaust;
use crate::lock::Held;
use crate::reclaim::{Config, Domain, Epoch, Guard, Mode, end_with_structure};
use crate::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::sync::{hint, mutation, order};
use crate::{ConcurrentSet, RawLock, SetHandle};

/// A search tree that is read without a lock. `F` is how readers [report that they have
/// left](crate::reclaim::Mode).
///
/// Invariant: the links from `top` lead to the domain's nodes, to each by one path; the left
/// subtree of a node has the smaller keys, the right one the larger.
pub struct RcuTree<K, L, F = Epoch> {
    /// Leads to the root, on its left.
    top: Fork<K, L>,
    domain: Domain,
    _flavour: PhantomData<fn() -> F>,
}

const LEFT: usize = 0;
const RIGHT: usize = 1;

/// What leads to the nodes below.
struct Fork<K, L> {
    /// Held by the thread that changes the rest.
    lock: L,
    /// Whether its node was taken out: then it does not change any more.
    removed: AtomicBool,
    /// [`LEFT`] and [`RIGHT`].
    below: [AtomicPtr<Node<K, L>>; 2],
}

struct Node<K, L> {
    fork: Fork<K, L>,
    key: K,
}

/// A link and what it leads to.
struct Edge<'g, K, L> {
    above: &'g Fork<K, L>,
    side: usize,
    /// Null, or the node with the key.
    node: *mut Node<K, L>,
}

// SAFETY: the tree owns its nodes, which its end drops in any thread (`K: Send`); threads that read
// share the keys (`K: Sync`).
unsafe impl<K: Send + Sync, L: RawLock, F> Send for RcuTree<K, L, F> {}
// SAFETY: threads share keys (`K: Sync`), and one may drop what another has inserted (`K: Send`);
// all else is atomic, or under a node's lock.
unsafe impl<K: Send + Sync, L: RawLock, F> Sync for RcuTree<K, L, F> {}
// SAFETY: dropping a node drops its key, which any thread may do; the node does not own its links'
// targets.
unsafe impl<K: Send, L: RawLock> Send for Node<K, L> {}

impl<K, L: RawLock> Fork<K, L> {
    fn new(below: [*mut Node<K, L>; 2]) -> Self {
        let below = below.map(AtomicPtr::new);
        Self { lock: L::new(), removed: AtomicBool::new(false), below }
    }

    /// What is below it. The caller has the lock.
    fn both(&self) -> [*mut Node<K, L>; 2] {
        // Relaxed: changed with the lock held.
        [LEFT, RIGHT].map(|side| self.below[side].load(Ordering::Relaxed))
    }
}

impl<K, L: RawLock> Node<K, L> {
    fn new(key: K, below: [*mut Self; 2]) -> Self {
        Self { fork: Fork::new(below), key }
    }
}

impl<K, L: RawLock> Edge<'_, K, L> {
    /// Whether the position is still valid. The caller has the lock of the node above.
    fn holds(&self) -> bool {
        // Relaxed, both: changed with the lock held.
        let is_same = self.above.below[self.side].load(Ordering::Relaxed) == self.node;
        is_same && (mutation!("tree-trusts") || !self.above.removed.load(Ordering::Relaxed))
    }

    /// Changes the link to lead to `node`. The caller has the lock.
    fn set(&self, node: *mut Node<K, L>) {
        // Release: partner of the Acquire in `find`: a thread that finds the node sees its
        // contents.
        self.above.below[self.side].store(node, order!(Release, "tree-link"));
    }
}

impl<K, L: RawLock, F> RcuTree<K, L, F> {
    /// Creates one without keys; removed entries wait in a domain with this configuration.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            top: Fork::new([null_mut(); 2]),
            domain: Domain::of_nodes::<Node<K, L>>(config, 0),
            _flavour: PhantomData,
        }
    }

    /// The domain in which removed nodes wait until no reader can use them.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl<K: Ord + Clone + Send, L: RawLock, F> RcuTree<K, L, F> {
    #[inline]
    fn find<'g>(&'g self, key: &K, _guard: &'g Guard) -> Edge<'g, K, L> {
        let (mut above, mut side) = (&self.top, LEFT);
        loop {
            // Acquire: partner of the Release in `set`.
            let node = above.below[side].load(order!(Acquire, "tree-walk"));
            // SAFETY: null, or a node to which a link of the tree led in this section: removed
            // nodes are retired, and not dropped before the section's end.
            let Some(there) = (unsafe { node.as_ref() }) else {
                return Edge { above, side, node };
            };
            hint::unforeseen_branch();
            side = match key.cmp(&there.key) {
                cmp::Ordering::Equal => return Edge { above, side, node },
                cmp::Ordering::Less => LEFT,
                cmp::Ordering::Greater => RIGHT,
            };
            above = &there.fork;
        }
    }

    fn contains(&self, key: &K, guard: &Guard) -> bool {
        !self.find(key, guard).node.is_null()
    }

    fn insert(&self, key: K, guard: &Guard) -> bool {
        let mut edge = self.find(&key, guard);
        if !edge.node.is_null() {
            return false;
        }
        let node = guard.node(Node::new(key, [null_mut(); 2]));
        loop {
            let mut queue = L::Node::default();
            let held = Held::new(&edge.above.lock, &mut queue);
            if edge.holds() {
                edge.set(node.into_raw().as_ptr());
                return true;
            }
            drop(held);
            edge = self.find(&node.key, guard);
            if !edge.node.is_null() {
                return false;
            }
        }
    }

    fn remove(&self, key: &K, guard: &Guard) -> bool {
        loop {
            let edge = self.find(key, guard);
            if edge.node.is_null() {
                return false;
            }
            if edge.take_out(guard) {
                return true;
            }
        }
    }
}

impl<K: Ord + Clone + Send, L: RawLock> Edge<'_, K, L> {
    /// Takes the node out, unless the place has changed.
    fn take_out(&self, guard: &Guard) -> bool {
        let (mut first, mut second) = <(L::Node, L::Node)>::default();
        let _above = Held::new(&self.above.lock, &mut first);
        if !self.holds() {
            return false;
        }
        // SAFETY: `remove` has checked that the node is not null; it was found in this section, and
        // is not dropped before its end.
        let fork = unsafe { &(*self.node).fork };
        let _node = Held::new(&fork.lock, &mut second);
        match fork.both() {
            [only, none] | [none, only] if none.is_null() => self.set(only),
            both => {
                if !self.raise_heir(both, guard) {
                    return false;
                }
            }
        }
        // SAFETY: the link now leads past the node, and both locks are held.
        unsafe { remove(self.node, guard) };
        true
    }

    /// Replaces the node, which is locked and has two children, by its heir. Fails if the way to
    /// the heir has just become longer.
    fn raise_heir(&self, [left, right]: [*mut Node<K, L>; 2], guard: &Guard) -> bool {
        let length = core::iter::successors(Some(right), |node| {
            // Acquire: partner of the Release in `set`. SAFETY: the link was read in this section,
            // so the node is not dropped before its end.
            let left = unsafe { (**node).fork.below[LEFT].load(Ordering::Acquire) };
            (!left.is_null()).then_some(left)
        });
        let mut queues: Vec<L::Node> = length.map(|_| L::Node::default()).collect();
        let mut way = Vec::with_capacity(queues.len());
        let mut next = right;
        for queue in &mut queues {
            // SAFETY: the node is not null, and a link of the tree led there in this section, so it
            // is not dropped before its end.
            let fork = unsafe { &(*next).fork };
            way.push((next, fork, Held::new(&fork.lock, queue)));
            next = fork.both()[LEFT];
            if next.is_null() {
                break;
            }
        }
        if !next.is_null() {
            return false;
        }
        // No other thread can find a copy before all are made: if a key's `Clone` panics, the
        // existing copies are dropped.
        let mut copies = Vec::with_capacity(way.len());
        let mut copy = |node: *mut Node<K, L>, below| {
            // SAFETY: the node is on the path, whose locks are held: it is in the tree, and not
            // dropped before the section's end.
            let key = unsafe { (*node).key.clone() };
            let copy = guard.node(Node::new(key, below));
            let edge = copy.as_ptr();
            copies.push(copy);
            edge
        };
        let (heir, fork, _) = way.last().expect("there is a right side");
        let mut below = fork.both()[RIGHT];
        for (node, fork, _) in way.iter().rev().skip(1) {
            below = copy(*node, [below, fork.both()[RIGHT]]);
        }
        let top = copy(*heir, [left, below]);
        copies.into_iter().for_each(|copy| _ = copy.into_raw());
        self.set(top);
        for (node, _, _) in &way {
            // SAFETY: the node was copied: the new top leads to the copy and not to the node, whose
            // lock is held.
            unsafe { remove(*node, guard) };
        }
        true
    }
}

/// Marks a node as removed, and retires it.
///
/// # Safety
///
/// The caller has unlinked the node, and still has its lock.
unsafe fn remove<K: Send, L: RawLock>(node: *mut Node<K, L>, guard: &Guard) {
    // SAFETY: the node was found in this section, and is not dropped before its end.
    unsafe { &*node }.fork.removed.store(true, Ordering::Relaxed); // Relaxed: read with the lock held
    // SAFETY: `Guard::node` of this domain has made the node. It was removed (contract of this
    // function) by the one thread that has its lock and found it unmarked, so it is retired once.
    unsafe { guard.retire_node(node) };
}

impl<K, L: RawLock, F> Default for RcuTree<K, L, F> {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl<K, L, F> Drop for RcuTree<K, L, F> {
    /// Rotates the left child upwards until there is none. This avoids recursion, which could be as
    /// deep as the number of keys.
    fn drop(&mut self) {
        // Relaxed, throughout: no other thread has the tree.
        let mut node = self.top.below[LEFT].load(Ordering::Relaxed);
        exhaust(|| {
            // SAFETY: null, or a node of this tree, which no other thread has; no link leads to
            // retired nodes.
            let Some(this) = (unsafe { node.as_ref() }) else { return false };
            let below = &this.fork.below;
            let left = below[LEFT].load(Ordering::Relaxed);
            if left.is_null() {
                let right = below[RIGHT].load(Ordering::Relaxed);
                let this = core::mem::replace(&mut node, right);
                // SAFETY: `this` is a node of this tree, to which no link leads any more, and which
                // no other thread has; the domain is dropped later.
                unsafe { end_with_structure(this) };
                return true;
            }
            // SAFETY: `left` is not null, and a node of this tree, which no other thread has.
            let inner = unsafe { &(*left).fork.below[RIGHT] };
            below[LEFT].store(inner.load(Ordering::Relaxed), Ordering::Relaxed);
            inner.store(node, Ordering::Relaxed);
            node = left;
            true
        });
    }
}

impl<K, L, F> fmt::Debug for RcuTree<K, L, F> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("RcuTree").field("domain", &self.domain).finish_non_exhaustive()
    }
}

/// A thread's access to an [`RcuTree`].
pub struct RcuTreeHandle<'a, K, L, F: Mode = Epoch> {
    tree: &'a RcuTree<K, L, F>,
    handle: F::Handle<'a>,
}

impl<K, L, F: Mode> fmt::Debug for RcuTreeHandle<'_, K, L, F> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("RcuTreeHandle").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl<K: Ord + Clone + Send + Sync, L: RawLock, F: Mode> ConcurrentSet<K> for RcuTree<K, L, F> {
    type Handle<'a>
        = RcuTreeHandle<'a, K, L, F>
    where
        Self: 'a;

    fn handle(&self) -> RcuTreeHandle<'_, K, L, F> {
        RcuTreeHandle { tree: self, handle: F::register(&self.domain) }
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.domain.statistics(visit);
    }
}

impl<K: Ord + Clone + Send, L: RawLock, F: Mode> SetHandle<K> for RcuTreeHandle<'_, K, L, F> {
    fn contains(&mut self, key: &K) -> bool {
        F::section(&mut self.handle, |guard| self.tree.contains(key, guard))
    }

    fn insert(&mut self, key: K) -> bool {
        F::section(&mut self.handle, |guard| self.tree.insert(key, guard))
    }

    fn remove(&mut self, key: &K) -> bool {
        F::section(&mut self.handle, |guard| self.tree.remove(key, guard))
    }
}

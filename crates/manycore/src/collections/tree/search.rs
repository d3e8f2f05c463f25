//! A binary search tree for one thread.

use alloc::boxed::Box;
use core::cmp::Ordering;
use core::marker::PhantomData;
use core::ptr::null_mut;

use crate::collections::SequentialMap;
use crate::exhaust::exhaust;
use crate::sync::cell::UnsafeCell;
use crate::sync::hint;

/// A search tree.
///
/// Invariant: the links from `root` lead through nodes that came from `Box` and belong to this
/// tree, each by one path; the left subtree of a node has the smaller keys, the right one the
/// larger.
#[derive(Debug)]
pub struct SearchTree<K, V> {
    root: UnsafeCell<NodePointer<K, V>>,
    _nodes: PhantomData<Box<Node<K, V>>>,
}

type NodePointer<K, V> = *mut UnsafeCell<Node<K, V>>;

const LEFT: usize = 0;
const RIGHT: usize = 1;

#[derive(Debug)]
struct Node<K, V> {
    key: K,
    value: V,
    /// [`LEFT`] and [`RIGHT`].
    below: [NodePointer<K, V>; 2],
}

/// The position of a link: in a node, on one side; or, if that is null, the root.
struct Edge<K, V> {
    above: NodePointer<K, V>,
    side: usize,
}

// SAFETY: the tree owns its nodes as by boxes, so that keys and values go to another thread with it
// (`Send`).
unsafe impl<K: Send, V: Send> Send for SearchTree<K, V> {}

impl<K, V> SearchTree<K, V> {
    /// Creates one without keys.
    #[must_use]
    pub fn new() -> Self {
        Self { root: UnsafeCell::new(null_mut()), _nodes: PhantomData }
    }

    fn set(&mut self, edge: &Edge<K, V>, link: NodePointer<K, V>) {
        if edge.above.is_null() {
            // SAFETY: `&mut self`: nothing else refers to the root.
            self.root.with_mut(|root| unsafe { *root = link });
        } else {
            // SAFETY: callers take `above` from this tree (its invariant), and `&mut self` excludes
            // all other references to the node.
            unsafe { (*edge.above).with_mut(|above| (*above).below[edge.side] = link) };
        }
    }

    /// What is below a node of this tree.
    fn below(&self, node: NodePointer<K, V>) -> [NodePointer<K, V>; 2] {
        // SAFETY: callers take `node` from this tree (its invariant), and every change takes
        // `&mut self`.
        unsafe { (*node).with(|node| (*node).below) }
    }

    /// Removes the smallest node on the right of a node that has both children.
    fn take_successor(&mut self, node: NodePointer<K, V>) -> NodePointer<K, V> {
        let mut edge = Edge { above: node, side: RIGHT };
        let mut next = self.below(node)[RIGHT];
        loop {
            let below = self.below(next);
            if below[LEFT].is_null() {
                self.set(&edge, below[RIGHT]);
                return next;
            }
            edge = Edge { above: next, side: LEFT };
            next = below[LEFT];
        }
    }
}

impl<K: Ord, V> SearchTree<K, V> {
    /// The link that leads to the key, or would lead to it, and the link's position.
    fn find(&self, key: &K) -> (Edge<K, V>, NodePointer<K, V>) {
        let mut edge = Edge { above: null_mut(), side: LEFT };
        // SAFETY: what changes the root takes `&mut self`.
        let mut node = self.root.with(|root| unsafe { *root });
        while !node.is_null() {
            // SAFETY: the links of the tree lead to valid nodes (its invariant), and every change
            // takes `&mut self`.
            let (order, below) =
                unsafe { (*node).with(|node| (key.cmp(&(*node).key), (*node).below)) };
            hint::unforeseen_branch();
            let side = match order {
                Ordering::Equal => break,
                Ordering::Less => LEFT,
                Ordering::Greater => RIGHT,
            };
            edge = Edge { above: node, side };
            node = below[side];
        }
        (edge, node)
    }
}

impl<K: Ord, V: Clone> SequentialMap<K, V> for SearchTree<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        let (_, node) = self.find(key);
        // SAFETY: `find` has returned a node of this tree that is not null, and every change takes
        // `&mut self`.
        (!node.is_null()).then(|| unsafe { (*node).with(|node| (*node).value.clone()) })
    }

    fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (edge, node) = self.find(&key);
        if node.is_null() {
            let below = [null_mut(); 2];
            let new = Box::into_raw(Box::new(UnsafeCell::new(Node { key, value, below })));
            self.set(&edge, new);
            return None;
        }
        // SAFETY: `find` has returned a node of this tree that is not null, and `&mut self`:
        // nothing else refers to it.
        Some(unsafe { (*node).with_mut(|node| core::mem::replace(&mut (*node).value, value)) })
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        let (edge, node) = self.find(key);
        if node.is_null() {
            return None;
        }
        let heir = match self.below(node) {
            [only, none] | [none, only] if none.is_null() => only,
            _ => {
                let next = self.take_successor(node);
                let below = self.below(node);
                // SAFETY: `take_successor` has taken the node out of this tree, and `&mut self`
                // excludes all other references to it.
                unsafe { (*next).with_mut(|next| (*next).below = below) };
                next
            }
        };
        self.set(&edge, heir);
        // SAFETY: `insert` has made the node by a box, and the links now lead past it.
        let node = unsafe { Box::from_raw(node) };
        Some(node.into_inner().value)
    }
}

impl<K, V> Default for SearchTree<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Drop for SearchTree<K, V> {
    /// Rotates the left child upwards until there is none. This avoids recursion, which could be as
    /// deep as the number of keys.
    fn drop(&mut self) {
        // SAFETY: `&mut self`: nothing else refers to the root.
        let mut node = self.root.with(|root| unsafe { *root });
        exhaust(|| {
            if node.is_null() {
                return false;
            }
            let [left, right] = self.below(node);
            if left.is_null() {
                let this = core::mem::replace(&mut node, right);
                // SAFETY: `insert` has made the node by a box, and `node` has gone on past it.
                drop(unsafe { Box::from_raw(this) });
                return true;
            }
            let inner = self.below(left)[RIGHT];
            self.set(&Edge { above: node, side: LEFT }, inner);
            self.set(&Edge { above: left, side: RIGHT }, node);
            node = left;
            true
        });
    }
}

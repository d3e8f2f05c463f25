//! A singly linked list in the order of its keys, for one thread.

use alloc::boxed::Box;
use core::cmp::Ordering;
use core::marker::PhantomData;
use core::ptr::null_mut;

use crate::collections::SequentialMap;
use crate::exhaust::exhaust;
use crate::sync::cell::UnsafeCell;

/// A sorted list.
///
/// Invariant: the links from `head` lead through nodes that came from `Box` and belong to this
/// list, in ascending order of their keys, to null.
#[derive(Debug)]
pub struct SortedList<K, V> {
    head: UnsafeCell<NodePointer<K, V>>,
    _nodes: PhantomData<Box<Node<K, V>>>,
}

type NodePointer<K, V> = *mut UnsafeCell<Node<K, V>>;

#[derive(Debug)]
struct Node<K, V> {
    key: K,
    value: V,
    next: NodePointer<K, V>,
}

// SAFETY: the list owns its nodes as by boxes, so that keys and values go to another thread with it
// (`Send`).
unsafe impl<K: Send, V: Send> Send for SortedList<K, V> {}

impl<K, V> SortedList<K, V> {
    /// Creates one without keys.
    #[must_use]
    pub fn new() -> Self {
        Self { head: UnsafeCell::new(null_mut()), _nodes: PhantomData }
    }

    /// Links the given node, or null, after `before` or at the front.
    fn set_next(&mut self, before: NodePointer<K, V>, node: NodePointer<K, V>) {
        if before.is_null() {
            // SAFETY: `&mut self`: nothing else refers to the head.
            self.head.with_mut(|head| unsafe { *head = node });
        } else {
            // SAFETY: callers take `before` from this list (its invariant), and `&mut self`
            // excludes all other references to the node.
            unsafe { (*before).with_mut(|before| (*before).next = node) };
        }
    }
}

impl<K: Ord, V> SortedList<K, V> {
    /// The last node before the key's position, the node at that position, and whether that has the
    /// key. Either may be null.
    fn find(&self, key: &K) -> (NodePointer<K, V>, NodePointer<K, V>, bool) {
        let mut before = null_mut();
        // SAFETY: what changes the head takes `&mut self`.
        let mut node = self.head.with(|head| unsafe { *head });
        while !node.is_null() {
            // SAFETY: the links of the list lead to valid nodes (its invariant), and every change
            // takes `&mut self`.
            let (order, next) =
                unsafe { (*node).with(|node| ((*node).key.cmp(key), (*node).next)) };
            if order != Ordering::Less {
                return (before, node, order == Ordering::Equal);
            }
            before = node;
            node = next;
        }
        (before, node, false)
    }
}

impl<K: Ord, V: Clone> SequentialMap<K, V> for SortedList<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        let (_, node, found) = self.find(key);
        // SAFETY: `find` has returned a node of this list that is not null, and every change takes
        // `&mut self`.
        found.then(|| unsafe { (*node).with(|node| (*node).value.clone()) })
    }

    fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (before, node, found) = self.find(&key);
        if found {
            // SAFETY: `find` has returned a node of this list that is not null, and `&mut self`:
            // nothing else refers to it.
            return Some(unsafe {
                (*node).with_mut(|node| core::mem::replace(&mut (*node).value, value))
            });
        }
        let new = Box::into_raw(Box::new(UnsafeCell::new(Node { key, value, next: node })));
        self.set_next(before, new);
        None
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        let (before, node, found) = self.find(key);
        if !found {
            return None;
        }
        // SAFETY: `find` has returned a node of this list that is not null, and `&mut self`:
        // nothing else refers to it.
        let next = unsafe { (*node).with(|node| (*node).next) };
        self.set_next(before, next);
        // SAFETY: `insert` has made the node by a box, and the link now leads past it.
        let node = unsafe { Box::from_raw(node) };
        Some(node.into_inner().value)
    }
}

impl<K, V> Default for SortedList<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Drop for SortedList<K, V> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: nothing else refers to the head.
        let mut node = self.head.with(|head| unsafe { *head });
        exhaust(|| {
            if node.is_null() {
                return false;
            }
            // SAFETY: `insert` has made the node by a box, and each is reached once.
            let this = unsafe { Box::from_raw(node) }.into_inner();
            node = this.next;
            true
        });
    }
}

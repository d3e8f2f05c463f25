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
/// Invariant: the links from `head` lead through nodes that came from `Box` and belong to this list, in ascending order of
/// their keys, to null.
#[derive(Debug)]
pub struct SortedList<K, V> {
    head: UnsafeCell<Link<K, V>>,
    _nodes: PhantomData<Box<Node<K, V>>>,
}

type Link<K, V> = *mut UnsafeCell<Node<K, V>>;

#[derive(Debug)]
struct Node<K, V> {
    key: K,
    value: V,
    next: Link<K, V>,
}

// SAFETY: the list owns its nodes.
unsafe impl<K: Send, V: Send> Send for SortedList<K, V> {}

impl<K, V> SortedList<K, V> {
    /// Without keys.
    pub fn new() -> Self {
        Self { head: UnsafeCell::new(null_mut()), _nodes: PhantomData }
    }

    /// Links the node in, or whatever it is, after `before` or at the front.
    fn set_next(&mut self, before: Link<K, V>, node: Link<K, V>) {
        if before.is_null() {
            // SAFETY: this list is ours alone.
            self.head.with_mut(|head| unsafe { *head = node });
        } else {
            // SAFETY: a node of this list, which is ours alone.
            unsafe { (*before).with_mut(|before| (*before).next = node) };
        }
    }
}

impl<K: Ord, V> SortedList<K, V> {
    /// The last node before the key's place, the one at that place, and whether that has the key. Either may be null.
    fn find(&self, key: &K) -> (Link<K, V>, Link<K, V>, bool) {
        let mut before = null_mut();
        // SAFETY: nobody changes the list meanwhile.
        let mut node = self.head.with(|head| unsafe { *head });
        while !node.is_null() {
            // SAFETY: a node of this list.
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
        // SAFETY: a node of this list, which nobody changes meanwhile.
        found.then(|| unsafe { (*node).with(|node| (*node).value.clone()) })
    }

    fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (before, node, found) = self.find(&key);
        if found {
            // SAFETY: a node of this list, which is ours alone.
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
        // SAFETY: a node of this list, which is ours alone.
        let next = unsafe { (*node).with(|node| (*node).next) };
        self.set_next(before, next);
        // SAFETY: the node has come from `Box`, and nothing leads to it any more.
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
        // SAFETY: this list is ours alone.
        let mut node = self.head.with(|head| unsafe { *head });
        exhaust(|| {
            if node.is_null() {
                return false;
            }
            // SAFETY: the node has come from `Box`; nobody looks at the list any more.
            let this = unsafe { Box::from_raw(node) }.into_inner();
            node = this.next;
            true
        });
    }
}

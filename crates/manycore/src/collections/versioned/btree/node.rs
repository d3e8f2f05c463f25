//! Leaves, inner nodes, and the anchor. Each is one object, which a change copies as a whole.

use core::cmp::Ordering;

use crate::collections::versioned::word::{Datum, Word};
use crate::session::Link;
use crate::sync::hint;

/// Where a tree begins.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    /// A leaf or, if there are inner nodes, one of these.
    pub root: Link<()>,
    /// How many levels of inner nodes there are.
    pub height: usize,
}

/// The end of a node's keys, and the next node.
pub struct End<K, N> {
    /// All keys of the node are less than this, if there is a next node, which begins here.
    pub high: Word<K>,
    /// The next node of its level.
    pub next: Link<N>,
}

/// Keys with their values.
pub struct Leaf<K, V, const N: usize> {
    pub end: End<K, Self>,
    length: usize,
    keys: [Word<K>; N],
    values: [Word<V>; N],
}

/// Keys, and a child for each: the keys below a child are not less than its key.
pub struct Inner<K, const N: usize> {
    pub end: End<K, Self>,
    length: usize,
    /// What is less than the first key.
    first: Link<()>,
    keys: [Word<K>; N],
    below: [Link<()>; N],
}

macro_rules! copied {
    ($($node:ident<$($parameter:ident),* $(; $length:ident)?>)*) => {$(
        impl<$($parameter,)* $(const $length: usize)?> Clone for $node<$($parameter,)* $($length)?> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<$($parameter,)* $(const $length: usize)?> Copy for $node<$($parameter,)* $($length)?> {}
    )*};
}
copied! { End<K, T> Leaf<K, V; N> Inner<K; N> }

/// Reads a word of a node of which the session has charged only the head.
#[inline]
pub fn read<T>(word: &Word<T>) -> &Word<T> {
    hint::touch(word);
    word
}

/// Makes room at a place.
fn insert<T: Copy>(all: &mut [T], length: usize, at: usize, one: T) {
    all.copy_within(at..length, at + 1);
    all[at] = one;
}

/// Closes the gap that is left at a place.
fn take<T: Copy>(all: &mut [T], length: usize, at: usize) -> T {
    let one = all[at];
    all.copy_within(at + 1..length, at);
    one
}

impl<K: Datum, T> End<K, T> {
    pub const NONE: Self = Self { high: Word::NONE, next: Link::NULL };

    /// Whether a key belongs to a later node. `order` compares a key of the tree with it.
    ///
    /// # Safety
    ///
    /// In a session that has found the node.
    #[inline]
    pub unsafe fn is_passed(&self, order: impl Fn(&K) -> Ordering) -> bool {
        // SAFETY: where there is a next node, the end was written; the key is valid as long as the
        // node (contract of this function).
        !self.next.is_null() && order(unsafe { self.high.get() }) != Ordering::Greater
    }
}

impl<K, V, const N: usize> Leaf<K, V, N> {
    /// The number of a leaf's bytes that are before its values.
    pub const VALUES: usize = core::mem::offset_of!(Self, values);
}

impl<K: Datum, V: Datum, const N: usize> Leaf<K, V, N> {
    pub fn new() -> Self {
        Self { end: End::NONE, length: 0, keys: [Word::NONE; N], values: [Word::NONE; N] }
    }

    pub fn keys(&self) -> &[Word<K>] {
        &self.keys[..self.length]
    }

    pub fn values(&self) -> &[Word<V>] {
        &self.values[..self.length]
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// Where the key is, or would be.
    ///
    /// # Safety
    ///
    /// In a session that has found the leaf.
    #[inline]
    pub unsafe fn search(&self, order: impl Fn(&K) -> Ordering) -> Result<usize, usize> {
        // SAFETY: the keys are valid as long as the leaf (contract of this function).
        self.keys().binary_search_by(|key| order(unsafe { read(key).get() }))
    }

    /// The first entry whose key is not `before` another.
    ///
    /// # Safety
    ///
    /// In a session that has found the leaf.
    pub unsafe fn partition(&self, before: impl Fn(&K) -> bool) -> usize {
        // SAFETY: the keys are valid as long as the leaf (contract of this function).
        self.keys().partition_point(|key| before(unsafe { read(key).get() }))
    }

    /// There is room for one more.
    pub fn insert(&mut self, at: usize, key: Word<K>, value: Word<V>) {
        insert(&mut self.keys, self.length, at, key);
        insert(&mut self.values, self.length, at, value);
        self.length += 1;
    }

    pub fn replace(&mut self, at: usize, value: Word<V>) -> Word<V> {
        core::mem::replace(&mut self.values[..self.length][at], value)
    }

    pub fn remove(&mut self, at: usize) -> (Word<K>, Word<V>) {
        let entry =
            (take(&mut self.keys, self.length, at), take(&mut self.values, self.length, at));
        self.length -= 1;
        entry
    }

    /// Moves the entries from an index on into another leaf, with this leaf's end.
    pub fn split_off(&mut self, at: usize) -> Self {
        let mut right = Self { end: self.end, ..Self::new() };
        right.append(&self.keys[at..self.length], &self.values[at..self.length]);
        self.length = at;
        right
    }

    fn append(&mut self, keys: &[Word<K>], values: &[Word<V>]) {
        let end = self.length + keys.len();
        self.keys[self.length..end].copy_from_slice(keys);
        self.values[self.length..end].copy_from_slice(values);
        self.length = end;
    }

    /// Appends the entries of the next leaf, and takes over its end. There is room for the entries.
    pub fn merge(&mut self, right: &Self) {
        self.append(right.keys(), right.values());
        self.end = right.end;
    }
}

impl<K: Datum, const N: usize> Inner<K, N> {
    /// Creates one with no key, and one node below.
    pub fn new(first: Link<()>) -> Self {
        let (keys, below) = ([Word::NONE; N], [Link::NULL; N]);
        Self { end: End::NONE, length: 0, first, keys, below }
    }

    /// The number of keys: one fewer than the nodes below.
    pub fn len(&self) -> usize {
        self.length
    }

    pub fn keys(&self) -> &[Word<K>] {
        &self.keys[..self.length]
    }

    /// The node at a place, from 0 to `len`.
    #[inline]
    pub fn at(&self, place: usize) -> Link<()> {
        let below = match place.checked_sub(1) {
            None => &self.first,
            Some(place) => &self.below[..self.length][place],
        };
        hint::touch(below);
        *below
    }

    /// The index of the node below which a key is.
    ///
    /// # Safety
    ///
    /// In a session that has found the node.
    #[inline]
    pub unsafe fn place(&self, order: impl Fn(&K) -> Ordering) -> usize {
        // SAFETY: the keys are valid as long as the node (contract of this function).
        let is_not_after = |key: &Word<K>| order(unsafe { read(key).get() }) != Ordering::Greater;
        self.keys().partition_point(is_not_after)
    }

    /// The index of a node, if it is below this one.
    pub fn position(&self, node: Link<()>) -> Option<usize> {
        (0..=self.length).find(|&place| self.at(place) == node)
    }

    /// Inserts a node after an index, for the keys from a key on. There is room for it.
    pub fn insert(&mut self, after: usize, key: Word<K>, node: Link<()>) {
        insert(&mut self.keys, self.length, after, key);
        insert(&mut self.below, self.length, after, node);
        self.length += 1;
    }

    /// Removes the child after an index; returns the key at which the child began.
    pub fn remove(&mut self, after: usize) -> Word<K> {
        take(&mut self.below, self.length, after);
        let key = take(&mut self.keys, self.length, after);
        self.length -= 1;
        key
    }

    /// Moves the children after a key into another node with this node's end; returns the new node
    /// and that key.
    pub fn split_off(&mut self, at: usize) -> (Word<K>, Self) {
        let mut right = Self { end: self.end, ..Self::new(self.below[at]) };
        right.append(&self.keys[at + 1..self.length], &self.below[at + 1..self.length]);
        self.length = at;
        (self.keys[at], right)
    }

    fn append(&mut self, keys: &[Word<K>], below: &[Link<()>]) {
        let end = self.length + keys.len();
        self.keys[self.length..end].copy_from_slice(keys);
        self.below[self.length..end].copy_from_slice(below);
        self.length = end;
    }

    /// Appends the links of the next inner node, which begins at this key, and takes over its end.
    /// There is room for them.
    pub fn merge(&mut self, key: Word<K>, right: &Self) {
        self.append(&[key], &[right.first]);
        self.append(right.keys(), &right.below[..right.length]);
        self.end = right.end;
    }
}

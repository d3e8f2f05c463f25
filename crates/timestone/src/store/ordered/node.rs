//! A node: keys in their order, each with a value or a child.
//!
//! ```text
//!   leaf     | number of keys | keys | values |
//!   inner    | number of keys | keys | children: one more than keys |
//! ```
//!
//! Child `i` has the keys from key `i - 1` on and before key `i`. It is the place of a leaf, or
//! that of an inner node and 1.

use std::marker::PhantomData;

use zerocopy::IntoBytes;

use crate::Persist;
use crate::heap::words::WORDS_MAX;

/// Marks an inner node's place.
pub const INNER: u64 = 1;
/// The most keys of a node.
const KEYS_MAX: usize = 15;

/// The layout of the nodes of a map from `K` to `V`.
pub struct Layout<K, V>(PhantomData<fn(K) -> V>);

impl<K: Persist + Ord, V: Persist> Layout<K, V> {
    const KEY_WORDS: usize = size_of::<K>().div_ceil(8);
    const VALUE_WORDS: usize = size_of::<V>().div_ceil(8);
    const ENTRY_WORDS: usize = Self::KEY_WORDS + Self::VALUE_WORDS;
    /// The most keys of a leaf, and of an inner node.
    pub const LEAF_KEYS: usize = least(KEYS_MAX, (WORDS_MAX - 1) / most(Self::ENTRY_WORDS, 1));
    pub const INNER_KEYS: usize = inner_keys(Self::KEY_WORDS);
    pub const LEAF_WORDS: usize = 1 + Self::LEAF_KEYS * Self::ENTRY_WORDS;
    pub const INNER_WORDS: usize = 2 + Self::INNER_KEYS * (Self::KEY_WORDS + 1);
    const VALUES_AT: usize = 1 + Self::LEAF_KEYS * Self::KEY_WORDS;
    const CHILDREN_AT: usize = children_at(Self::KEY_WORDS);
    const FITS: () = assert!(
        Self::LEAF_KEYS >= 2 && Self::INNER_KEYS >= 2,
        "a node of an ordered map has two keys with their values at least, in 8 KiB"
    );

    /// A leaf without keys.
    pub fn new_leaf() -> Vec<u64> {
        () = Self::FITS;
        vec![0; Self::LEAF_WORDS]
    }

    /// A node at the top of two others.
    pub fn new_top(key: &K, children: [u64; 2]) -> Vec<u64> {
        let mut words = vec![0; Self::INNER_WORDS];
        words[Self::CHILDREN_AT] = children[0];
        Self::insert_child(&mut words, 0, key, children[1]);
        words
    }

    pub fn len(words: &[u64]) -> usize {
        words[0] as usize
    }

    fn set_len(words: &mut [u64], keys: usize) {
        words[0] = keys as u64;
    }

    pub fn key(words: &[u64], index: usize) -> K {
        let at = 1 + index * Self::KEY_WORDS;
        let (key, _) =
            K::read_from_prefix(words[at..].as_bytes()).expect("a node has room for its keys");
        key
    }

    fn set_key(words: &mut [u64], index: usize, key: &K) {
        let at = 1 + index * Self::KEY_WORDS;
        let bytes = key.as_bytes();
        words[at..].as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
    }

    pub fn value(words: &[u64], index: usize) -> V {
        let at = Self::VALUES_AT + index * Self::VALUE_WORDS;
        let (value, _) =
            V::read_from_prefix(words[at..].as_bytes()).expect("a leaf has room for its values");
        value
    }

    pub fn set_value(words: &mut [u64], index: usize, value: &V) {
        let at = Self::VALUES_AT + index * Self::VALUE_WORDS;
        let bytes = value.as_bytes();
        words[at..].as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
    }

    pub fn child(words: &[u64], index: usize) -> u64 {
        words[Self::CHILDREN_AT + index]
    }

    /// Which child has a key.
    pub fn child_of(words: &[u64], key: &K) -> usize {
        (0..Self::len(words)).take_while(|index| Self::key(words, *index) <= *key).count()
    }

    /// The index of a key in a leaf, or the index at which it would be.
    pub fn find(words: &[u64], key: &K) -> Result<usize, usize> {
        let before = (0..Self::len(words)).take_while(|index| Self::key(words, *index) < *key);
        let index = before.count();
        let is_there = index < Self::len(words) && Self::key(words, index) == *key;
        if is_there { Ok(index) } else { Err(index) }
    }

    /// Inserts a key and its value into a leaf that is not full.
    pub fn insert(words: &mut [u64], index: usize, key: &K, value: &V) {
        let keys = Self::len(words);
        shift(words, 1, Self::KEY_WORDS, index..keys);
        shift(words, Self::VALUES_AT, Self::VALUE_WORDS, index..keys);
        Self::set_key(words, index, key);
        Self::set_value(words, index, value);
        Self::set_len(words, keys + 1);
    }

    /// Takes a key and its value out of a leaf.
    pub fn remove(words: &mut [u64], index: usize) {
        let keys = Self::len(words);
        unshift(words, 1, Self::KEY_WORDS, index..keys);
        unshift(words, Self::VALUES_AT, Self::VALUE_WORDS, index..keys);
        Self::set_len(words, keys - 1);
    }

    /// Inserts a key, and the child that begins with it, into an inner node that is not full.
    pub fn insert_child(words: &mut [u64], index: usize, key: &K, child: u64) {
        let keys = Self::len(words);
        shift(words, 1, Self::KEY_WORDS, index..keys);
        shift(words, Self::CHILDREN_AT, 1, index + 1..keys + 1);
        Self::set_key(words, index, key);
        words[Self::CHILDREN_AT + index + 1] = child;
        Self::set_len(words, keys + 1);
    }

    /// Removes a child from an inner node with two or more children, together with the key before
    /// it, or the key behind it if the child is the first.
    pub fn remove_child(words: &mut [u64], index: usize) {
        let keys = Self::len(words);
        unshift(words, 1, Self::KEY_WORDS, index.saturating_sub(1)..keys);
        unshift(words, Self::CHILDREN_AT, 1, index..keys + 1);
        Self::set_len(words, keys - 1);
    }

    /// Moves the upper half of a full leaf to a new one. Returns the words of the new leaf, and its
    /// first key.
    pub fn split_leaf(words: &mut [u64]) -> (K, Vec<u64>) {
        let keys = Self::len(words);
        let (middle, mut upper) = (keys / 2, Self::new_leaf());
        copy(words, &mut upper, 1, Self::KEY_WORDS, middle..keys);
        copy(words, &mut upper, Self::VALUES_AT, Self::VALUE_WORDS, middle..keys);
        Self::set_len(&mut upper, keys - middle);
        Self::set_len(words, middle);
        (Self::key(&upper, 0), upper)
    }

    /// Moves the upper half of a full inner node to a new one. Returns the words of the new node,
    /// and the key between the two.
    pub fn split_inner(words: &mut [u64]) -> (K, Vec<u64>) {
        let keys = Self::len(words);
        let (middle, mut upper) = (keys / 2, vec![0; Self::INNER_WORDS]);
        copy(words, &mut upper, 1, Self::KEY_WORDS, middle + 1..keys);
        copy(words, &mut upper, Self::CHILDREN_AT, 1, middle + 1..keys + 1);
        Self::set_len(&mut upper, keys - middle - 1);
        Self::set_len(words, middle);
        (Self::key(words, middle), upper)
    }
}

const fn inner_keys(key_words: usize) -> usize {
    least(KEYS_MAX - 1, (WORDS_MAX - 2) / (key_words + 1))
}

/// The index of the first child in an inner node whose keys have this number of words.
pub const fn children_at(key_words: usize) -> usize {
    1 + inner_keys(key_words) * key_words
}

const fn least(one: usize, other: usize) -> usize {
    if one < other { one } else { other }
}

const fn most(one: usize, other: usize) -> usize {
    if one > other { one } else { other }
}

/// Moves the elements of a range one element up. Elements have `size` words, and the first one is
/// at `at`.
fn shift(words: &mut [u64], at: usize, size: usize, range: std::ops::Range<usize>) {
    words
        .copy_within(at + range.start * size..at + range.end * size, at + (range.start + 1) * size);
}

/// Moves the elements of a range one element down, over the first one.
fn unshift(words: &mut [u64], at: usize, size: usize, range: std::ops::Range<usize>) {
    words
        .copy_within(at + (range.start + 1) * size..at + range.end * size, at + range.start * size);
}

/// Copies the elements of a range to the begin of another node's.
fn copy(from: &[u64], to: &mut [u64], at: usize, size: usize, range: std::ops::Range<usize>) {
    let words = &from[at + range.start * size..at + range.end * size];
    to[at..at + words.len()].copy_from_slice(words);
}

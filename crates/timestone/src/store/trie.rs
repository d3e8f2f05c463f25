//! A trie over the hashes of keys: the structure of maps.
//!
//! ```text
//!   node   | 16 words: 0, or a leaf's place, or a node's place + 1 |   by four bits of the hash
//!   leaf   | next | key, to whole words | value, to whole words |
//! ```
//!
//! It has no array that grows: an insertion that meets another key makes a node below, so it
//! conflicts with changes of one node only. A change of a value locks its leaf. If all 64 bits of
//! two hashes are the same, the leaves form a list. Nodes stay after their leaves are removed.

use std::marker::PhantomData;

use xxhash_rust::xxh3::xxh3_64_with_seed;
use zerocopy::IntoBytes;

use super::transaction::sealed::Objects;
use super::transaction::{Session, Stop, Transaction};
use crate::error::Result;

/// Bits of the hash by which a node chooses.
const BITS: u32 = 4;
/// Words of a node.
pub const NODE_WORDS: usize = 1 << BITS;
/// Marks a node's place.
pub const NODE: u64 = 1;

/// How long keys and values are.
pub trait Shape: Copy {
    /// Bytes of a key.
    fn key_bytes(self) -> usize;
    /// Bytes of a value.
    fn value_bytes(self) -> usize;
}

/// As long as these types, which the compiler knows.
pub struct Typed<K, V>(PhantomData<fn(K) -> V>);

impl<K, V> Typed<K, V> {
    pub const NEW: Self = Self(PhantomData);
}

impl<K, V> Clone for Typed<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Typed<K, V> {}

impl<K, V> Shape for Typed<K, V> {
    #[inline]
    fn key_bytes(self) -> usize {
        size_of::<K>()
    }

    #[inline]
    fn value_bytes(self) -> usize {
        size_of::<V>()
    }
}

/// As long as a program of another language says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// Bytes of a key.
    pub key: usize,
    /// Bytes of a value.
    pub value: usize,
}

impl Shape for Bytes {
    fn key_bytes(self) -> usize {
        self.key
    }

    fn value_bytes(self) -> usize {
        self.value
    }
}

/// Keys and values, as bytes.
#[derive(Clone, Copy)]
pub struct Trie<S> {
    /// The node at the top.
    pub root: u64,
    /// What keys are hashed with.
    pub seed: u64,
    pub shape: S,
}

/// Where a key is, or would be.
struct Spot {
    /// The lowest node on the way.
    node: u64,
    index: usize,
    /// The number of bits of the hash that are not used up to that node.
    shift: u32,
    /// The first leaf there, or 0.
    first: u64,
    /// The key's leaf, or 0, and the one before it in its list, or 0.
    leaf: u64,
    before: u64,
}

impl<S: Shape> Trie<S> {
    #[inline]
    fn value_at(&self) -> usize {
        1 + self.shape.key_bytes().div_ceil(8)
    }

    #[inline]
    fn leaf_words(&self) -> usize {
        self.value_at() + self.shape.value_bytes().div_ceil(8)
    }

    fn hash(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed)
    }

    /// The key in a leaf.
    #[inline]
    pub fn key<'l>(&self, leaf: &'l [u64]) -> &'l [u8] {
        &leaf[1..].as_bytes()[..self.shape.key_bytes()]
    }

    /// The value in a leaf.
    #[inline]
    pub fn value<'l>(&self, leaf: &'l [u64]) -> &'l [u8] {
        &leaf[self.value_at()..].as_bytes()[..self.shape.value_bytes()]
    }

    #[inline]
    fn value_mut<'l>(&self, leaf: &'l mut [u64]) -> &'l mut [u8] {
        &mut leaf[self.value_at()..].as_mut_bytes()[..self.shape.value_bytes()]
    }

    #[inline]
    fn find(&self, session: &impl Session, key: &[u8], hash: u64) -> Spot {
        let (mut node, mut shift) = (self.root, 0);
        loop {
            let index = (hash >> shift) as usize % NODE_WORDS;
            let word = session.object(node, NODE_WORDS)[index];
            shift += BITS;
            if word & NODE == 0 {
                let (leaf, before) = self.find_in_list(session, key, word);
                return Spot { node, index, shift, first: word, leaf, before };
            }
            node = word & !NODE;
        }
    }

    /// The leaf with the key in a list, and the one before it.
    #[inline]
    fn find_in_list(&self, session: &impl Session, key: &[u8], first: u64) -> (u64, u64) {
        let (mut leaf, mut before) = (first, 0);
        while leaf != 0 {
            let words = session.object(leaf, self.leaf_words());
            if self.key(words) == key {
                break;
            }
            (leaf, before) = (words[0], leaf);
        }
        (leaf, before)
    }

    /// The leaf of a key.
    #[inline]
    pub fn get<'s>(&self, session: &'s impl Session, key: &[u8]) -> Option<&'s [u64]> {
        let leaf = self.find_noted(session, key)?;
        Some(session.object(leaf, self.leaf_words()))
    }

    /// The leaf of a key, with the reads noted. The leaf itself proves that the key exists, because
    /// removing the key frees the leaf. The lowest node proves that a key does not exist, because
    /// inserting the key changes that node.
    #[inline]
    fn find_noted(&self, session: &impl Session, key: &[u8]) -> Option<u64> {
        let Spot { node, leaf, .. } = self.find(session, key, self.hash(key));
        if leaf == 0 {
            session.note(node, NODE_WORDS);
            return None;
        }
        session.note(leaf, self.leaf_words());
        Some(leaf)
    }

    /// Sets the value of a key; `before` sees the one that it had.
    #[inline]
    pub fn insert(
        &self,
        tx: &mut Transaction<'_, '_>,
        key: &[u8],
        value: &[u8],
        before: impl FnOnce(&[u8]),
    ) -> Result<(), Stop> {
        let hash = self.hash(key);
        let spot = self.find(tx, key, hash);
        if spot.leaf != 0 {
            let leaf = tx.lock_words(spot.leaf, self.leaf_words())?;
            before(self.value(leaf));
            self.value_mut(leaf).copy_from_slice(value);
            return Ok(());
        }
        let shares_hash = spot.first != 0 && spot.shift >= u64::BITS;
        let next = if shares_hash { spot.first } else { 0 };
        let mut word = self.make_leaf(tx, key, value, next)?;
        if spot.first != 0 && !shares_hash {
            word = self.make_nodes(tx, spot.first, word, hash, spot.shift)?;
        }
        tx.lock_words(spot.node, NODE_WORDS)?[spot.index] = word;
        Ok(())
    }

    fn make_leaf(
        &self,
        tx: &mut Transaction<'_, '_>,
        key: &[u8],
        value: &[u8],
        next: u64,
    ) -> Result<u64, Stop> {
        let mut words = vec![0; self.leaf_words()];
        words[0] = next;
        words[1..].as_mut_bytes()[..key.len()].copy_from_slice(key);
        self.value_mut(&mut words).copy_from_slice(value);
        tx.allocate(&words)
    }

    /// Makes a chain of nodes down to where the hashes of two leaves differ, or end. Returns the
    /// word for the topmost node.
    fn make_nodes(
        &self,
        tx: &mut Transaction<'_, '_>,
        old: u64,
        new: u64,
        hash: u64,
        shift: u32,
    ) -> Result<u64, Stop> {
        let old_hash = self.hash(self.key(tx.object(old, self.leaf_words())));
        let index = |hash: u64| (hash >> shift) as usize % NODE_WORDS;
        let mut node = [0; NODE_WORDS];
        if index(old_hash) != index(hash) {
            (node[index(old_hash)], node[index(hash)]) = (old, new);
        } else if shift + BITS < u64::BITS {
            node[index(hash)] = self.make_nodes(tx, old, new, hash, shift + BITS)?;
        } else {
            // The new leaf is not in the map yet, and leads to the old one.
            tx.lock_words(new, self.leaf_words())?[0] = old;
            node[index(hash)] = new;
        }
        Ok(tx.allocate(&node)? | NODE)
    }

    /// Changes the value of a key; returns whether the map has the key.
    #[inline]
    pub fn update(
        &self,
        tx: &mut Transaction<'_, '_>,
        key: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool, Stop> {
        let Some(leaf) = self.find_noted(tx, key) else { return Ok(false) };
        change(self.value_mut(tx.lock_words(leaf, self.leaf_words())?));
        Ok(true)
    }

    /// Removes a key; returns whether it was there. `before` sees its value.
    #[inline]
    pub fn remove(
        &self,
        tx: &mut Transaction<'_, '_>,
        key: &[u8],
        before: impl FnOnce(&[u8]),
    ) -> Result<bool, Stop> {
        let spot = self.find(tx, key, self.hash(key));
        if spot.leaf == 0 {
            tx.note(spot.node, NODE_WORDS);
            return Ok(false);
        }
        let leaf = tx.lock_words(spot.leaf, self.leaf_words())?;
        let next = leaf[0];
        before(self.value(leaf));
        match spot.before {
            0 => tx.lock_words(spot.node, NODE_WORDS)?[spot.index] = next,
            before => tx.lock_words(before, self.leaf_words())?[0] = next,
        }
        tx.free_words(spot.leaf, self.leaf_words())?;
        Ok(true)
    }

    /// Visits all leaves, in no order.
    pub fn for_each(&self, session: &impl Session, mut visit: impl FnMut(&[u64])) {
        let mut nodes = vec![self.root];
        while let Some(node) = nodes.pop() {
            session.note(node, NODE_WORDS);
            for word in session.object(node, NODE_WORDS) {
                if word & NODE != 0 {
                    nodes.push(word & !NODE);
                    continue;
                }
                let mut leaf = *word;
                while leaf != 0 {
                    session.note(leaf, self.leaf_words());
                    let words = session.object(leaf, self.leaf_words());
                    visit(words);
                    leaf = words[0];
                }
            }
        }
    }
}

//! A map: a trie over the hashes of its keys.
//!
//! ```text
//!   node   | 16 words: 0, or a leaf's place, or a node's place + 1 |        the next four bits of the hash choose
//!   leaf   | next | key, to whole words | value, to whole words |
//! ```
//!
//! It has no array that grows: an insertion that meets another key makes a node below, and so it
//! conflicts with changes of one node only. A change of a value locks its leaf. When all 64 bits of
//! two hashes are the same, the leaves are a list. Nodes stay when their leaves have gone.

use std::marker::PhantomData;

use xxhash_rust::xxh3::xxh3_64_with_seed;
use zerocopy::IntoBytes;

use super::catalog;
use super::member::Member;
use super::transaction::sealed::Objects;
use super::transaction::{Session, Stop, Transaction};
use crate::Persist;
use crate::error::Result;

/// Bits of the hash by which a node chooses.
const BITS: u32 = 4;
/// Words of a node.
pub const NODE_WORDS: usize = 1 << BITS;
/// Marks a node's place.
pub const NODE: u64 = 1;

/// Keys and values in a [`Store`](super::Store), by name. Copies of it are the same map.
pub struct Map<K, V> {
    /// The node at the top.
    root: u64,
    seed: u64,
    types: PhantomData<fn(K) -> V>,
}

impl<K, V> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Map<K, V> {}

/// Where a key is, or would be.
struct Spot {
    /// The lowest node on the way.
    node: u64,
    index: usize,
    /// Bits of the hash that are left below that node.
    shift: u32,
    /// The first leaf there, or 0.
    first: u64,
    /// The key's leaf, or 0, and the one before it in its list, or 0.
    leaf: u64,
    before: u64,
}

impl<K: Persist, V: Persist> Map<K, V> {
    const KEY_WORDS: usize = size_of::<K>().div_ceil(8);
    const VALUE_AT: usize = 1 + Self::KEY_WORDS;
    const LEAF_WORDS: usize = Self::VALUE_AT + size_of::<V>().div_ceil(8);

    pub(super) fn open(member: &mut Member<'_>, name: &str, seed: u64) -> Result<Self> {
        let schema = Self::schema();
        let root = member.run(|tx| catalog::root(tx, name, &schema, &[0; NODE_WORDS]))?;
        Ok(Self::at(root, seed))
    }

    /// The map with this node at the top.
    pub(super) fn at(root: u64, seed: u64) -> Self {
        Self { root, seed, types: PhantomData }
    }

    /// What the catalog says of it.
    pub(super) fn schema() -> String {
        format!("a map from {} to {}", catalog::type_text::<K>(), catalog::type_text::<V>())
    }

    fn hash(&self, key: &K) -> u64 {
        xxh3_64_with_seed(key.as_bytes(), self.seed)
    }

    #[inline]
    fn find(&self, session: &impl Session, key: &K, hash: u64) -> Spot {
        let (mut node, mut shift) = (self.root, 0);
        loop {
            let index = (hash >> shift) as usize % NODE_WORDS;
            let word = session.object(node, NODE_WORDS)[index];
            shift += BITS;
            if word & NODE == 0 {
                let (leaf, before) = Self::find_in_list(session, key, word);
                return Spot { node, index, shift, first: word, leaf, before };
            }
            node = word & !NODE;
        }
    }

    /// The leaf with the key in a list, and the one before it.
    #[inline]
    fn find_in_list(session: &impl Session, key: &K, first: u64) -> (u64, u64) {
        let (mut leaf, mut before) = (first, 0);
        while leaf != 0 {
            let words = session.object(leaf, Self::LEAF_WORDS);
            if words[1..].as_bytes()[..size_of::<K>()] == *key.as_bytes() {
                break;
            }
            (leaf, before) = (words[0], leaf);
        }
        (leaf, before)
    }

    /// The value of a key.
    ///
    /// Time: one object for each four bits of a hash that the map needs to tell its keys apart.
    #[inline]
    pub fn get(&self, session: &impl Session, key: &K) -> Option<V> {
        let leaf = self.find_noted(session, key)?;
        Some(Self::value(session.object(leaf, Self::LEAF_WORDS)))
    }

    /// The leaf of a key. It says by itself that the key is there: whatever takes that out of the
    /// map ends it. That the key is not there, the lowest node says: whatever puts it in, changes
    /// that.
    #[inline]
    fn find_noted(&self, session: &impl Session, key: &K) -> Option<u64> {
        let Spot { node, leaf, .. } = self.find(session, key, self.hash(key));
        if leaf == 0 {
            session.note(node, NODE_WORDS);
            return None;
        }
        session.note(leaf, Self::LEAF_WORDS);
        Some(leaf)
    }

    fn value(leaf: &[u64]) -> V {
        let (value, _) = V::read_from_prefix(leaf[Self::VALUE_AT..].as_bytes())
            .expect("a leaf has room for its value");
        value
    }

    fn key(leaf: &[u64]) -> K {
        let (key, _) =
            K::read_from_prefix(leaf[1..].as_bytes()).expect("a leaf has room for its key");
        key
    }

    fn set_value(leaf: &mut [u64], value: &V) {
        let bytes = value.as_bytes();
        leaf[Self::VALUE_AT..].as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
    }

    /// Sets the value of a key, and returns the one before.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    pub fn insert(
        &self,
        tx: &mut Transaction<'_, '_>,
        key: K,
        value: V,
    ) -> Result<Option<V>, Stop> {
        let hash = self.hash(&key);
        let spot = self.find(tx, &key, hash);
        if spot.leaf != 0 {
            let leaf = tx.lock_words(spot.leaf, Self::LEAF_WORDS)?;
            let before = Self::value(leaf);
            Self::set_value(leaf, &value);
            return Ok(Some(before));
        }
        let shares_hash = spot.first != 0 && spot.shift >= u64::BITS;
        let next = if shares_hash { spot.first } else { 0 };
        let mut word = Self::make_leaf(tx, &key, &value, next)?;
        if spot.first != 0 && !shares_hash {
            word = self.make_nodes(tx, spot.first, word, hash, spot.shift)?;
        }
        tx.lock_words(spot.node, NODE_WORDS)?[spot.index] = word;
        Ok(None)
    }

    fn make_leaf(tx: &mut Transaction<'_, '_>, key: &K, value: &V, next: u64) -> Result<u64, Stop> {
        let mut words = vec![0; Self::LEAF_WORDS];
        words[0] = next;
        words[1..].as_mut_bytes()[..size_of::<K>()].copy_from_slice(key.as_bytes());
        Self::set_value(&mut words, value);
        tx.allocate(&words)
    }

    /// Nodes below each other down to where the hashes of two leaves differ, or end. Returns the
    /// word for the topmost.
    fn make_nodes(
        &self,
        tx: &mut Transaction<'_, '_>,
        old: u64,
        new: u64,
        hash: u64,
        shift: u32,
    ) -> Result<u64, Stop> {
        let old_hash = self.hash(&Self::key(tx.object(old, Self::LEAF_WORDS)));
        let index = |hash: u64| (hash >> shift) as usize % NODE_WORDS;
        let mut node = [0; NODE_WORDS];
        if index(old_hash) != index(hash) {
            (node[index(old_hash)], node[index(hash)]) = (old, new);
        } else if shift + BITS < u64::BITS {
            node[index(hash)] = self.make_nodes(tx, old, new, hash, shift + BITS)?;
        } else {
            // The new leaf is not in the map yet, and leads to the old one.
            tx.lock_words(new, Self::LEAF_WORDS)?[0] = old;
            node[index(hash)] = new;
        }
        Ok(tx.allocate(&node)? | NODE)
    }

    /// Changes the value of a key; whether it is there.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    pub fn update(
        &self,
        tx: &mut Transaction<'_, '_>,
        key: &K,
        change: impl FnOnce(&mut V),
    ) -> Result<bool, Stop> {
        let Some(leaf) = self.find_noted(tx, key) else { return Ok(false) };
        let words = tx.lock_words(leaf, Self::LEAF_WORDS)?;
        let mut value = Self::value(words);
        change(&mut value);
        Self::set_value(words, &value);
        Ok(true)
    }

    /// Removes a key, and returns its value.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    pub fn remove(&self, tx: &mut Transaction<'_, '_>, key: &K) -> Result<Option<V>, Stop> {
        let spot = self.find(tx, key, self.hash(key));
        if spot.leaf == 0 {
            tx.note(spot.node, NODE_WORDS);
            return Ok(None);
        }
        let leaf = tx.lock_words(spot.leaf, Self::LEAF_WORDS)?;
        let (next, value) = (leaf[0], Self::value(leaf));
        match spot.before {
            0 => tx.lock_words(spot.node, NODE_WORDS)?[spot.index] = next,
            before => tx.lock_words(before, Self::LEAF_WORDS)?[0] = next,
        }
        tx.free_words(spot.leaf, Self::LEAF_WORDS)?;
        Ok(Some(value))
    }

    /// Visits all keys and values, in no order.
    pub fn for_each(&self, session: &impl Session, mut visit: impl FnMut(K, V)) {
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
                    session.note(leaf, Self::LEAF_WORDS);
                    let words = session.object(leaf, Self::LEAF_WORDS);
                    visit(Self::key(words), Self::value(words));
                    leaf = words[0];
                }
            }
        }
    }

    /// How many keys there are: counts them.
    pub fn len(&self, session: &impl Session) -> usize {
        let mut keys = 0;
        self.for_each(session, |_, _| keys += 1);
        keys
    }

    /// Whether there is no key.
    pub fn is_empty(&self, session: &impl Session) -> bool {
        self.len(session) == 0
    }
}

impl<K, V> std::fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Map").field("root", &self.root).finish_non_exhaustive()
    }
}

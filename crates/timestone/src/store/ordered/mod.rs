//! A map in the order of its keys: a B+ tree.
//!
//! The root is an object that leads to the node at the top. A node that is full is divided, and a
//! node that has become empty goes. So an insertion or a removal mostly changes one leaf, and
//! conflicts with changes of keys near by only.

mod node;
mod range;

use std::marker::PhantomData;
use std::ops::RangeBounds;

use super::catalog;
use super::member::Member;
use super::transaction::sealed::Objects;
use super::transaction::{Session, Stop, Transaction};
use crate::Persist;
use crate::error::Result;
pub(super) use node::{INNER, children_at};

use node::Layout;
pub use range::Range;

/// Words of the root.
const ROOT_WORDS: usize = 1;

/// Keys in their order, with values, in a [`Store`](super::Store), by name. Copies of it are the
/// same map.
///
/// The order is that of the keys' type in the program. It has to stay the same for as long as the
/// store is used.
///
/// ```
/// use timestone::{OrderedMap, Store};
///
/// let directory = tempfile::tempdir()?;
/// let store = Store::open(directory.path())?;
/// let readings: OrderedMap<u64, i64> = store.ordered_map("readings")?;
/// let mut me = store.register()?;
/// me.run(|tx| {
///     for time in [30, 10, 20] {
///         readings.insert(tx, time, -5)?;
///     }
///     Ok(())
/// })?;
/// let times = me.read(|now| readings.range(now, 15..).map(|(time, _)| time).collect::<Vec<_>>());
/// assert_eq!(times, [20, 30]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OrderedMap<K, V> {
    root: u64,
    types: PhantomData<fn(K) -> V>,
}

impl<K, V> Clone for OrderedMap<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for OrderedMap<K, V> {}

/// An inner node on the way to a leaf.
struct Step {
    node: u64,
    /// Which child is on the way.
    child: usize,
}

/// A leaf, and the path to it from the root.
struct Spot {
    way: Vec<Step>,
    leaf: u64,
}

impl<K: Persist + Ord, V: Persist> OrderedMap<K, V> {
    const LEAF_WORDS: usize = Layout::<K, V>::LEAF_WORDS;
    const INNER_WORDS: usize = Layout::<K, V>::INNER_WORDS;

    pub(super) fn open(member: &mut Member<'_>, name: &str) -> Result<Self> {
        let schema = Self::schema();
        let root = member.run(|tx| {
            let root = catalog::root(tx, name, &schema, &[0; ROOT_WORDS])?;
            if tx.object(root, ROOT_WORDS)[0] == 0 {
                let leaf = tx.allocate(&Layout::<K, V>::new_leaf())?;
                tx.lock_words(root, ROOT_WORDS)?[0] = leaf;
            }
            Ok(root)
        })?;
        Ok(Self::at(root))
    }

    pub(super) fn at(root: u64) -> Self {
        Self { root, types: PhantomData }
    }

    /// What the catalog says of it.
    pub(super) fn schema() -> String {
        let (key, value) = (catalog::type_text::<K>(), catalog::type_text::<V>());
        format!("an ordered map from {key} to {value}")
    }

    fn top(&self, session: &impl Session) -> u64 {
        session.object(self.root, ROOT_WORDS)[0]
    }

    /// The leaf that has a key or would have it.
    fn find(&self, session: &impl Session, key: &K) -> Spot {
        let (mut way, mut word) = (Vec::new(), self.top(session));
        while word & INNER != 0 {
            let node = word & !INNER;
            let words = session.object(node, Self::INNER_WORDS);
            let child = Layout::<K, V>::child_of(words, key);
            way.push(Step { node, child });
            word = Layout::<K, V>::child(words, child);
        }
        Spot { way, leaf: word }
    }

    /// The leaf of a key. A transaction that inserts or removes the key changes this leaf, or
    /// replaces it.
    fn leaf<'s>(&self, session: &'s impl Session, key: &K) -> &'s [u64] {
        let mut word = self.top(session);
        while word & INNER != 0 {
            let words = session.object(word & !INNER, Self::INNER_WORDS);
            word = Layout::<K, V>::child(words, Layout::<K, V>::child_of(words, key));
        }
        session.note(word, Self::LEAF_WORDS);
        session.object(word, Self::LEAF_WORDS)
    }

    /// The value of a key.
    ///
    /// Time: one node for each level. The number of levels is the logarithm of the number of keys,
    /// to a base of 7 to 15.
    pub fn get(&self, session: &impl Session, key: &K) -> Option<V> {
        let words = self.leaf(session, key);
        let index = Layout::<K, V>::find(words, key).ok()?;
        Some(Layout::<K, V>::value(words, index))
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
        let Spot { way, leaf } = self.find(tx, &key);
        let words = tx.lock_words(leaf, Self::LEAF_WORDS)?;
        let index = match Layout::<K, V>::find(words, &key) {
            Ok(index) => {
                let before = Layout::<K, V>::value(words, index);
                Layout::<K, V>::set_value(words, index, &value);
                return Ok(Some(before));
            }
            Err(index) => index,
        };
        if Layout::<K, V>::len(words) < Layout::<K, V>::LEAF_KEYS {
            Layout::<K, V>::insert(words, index, &key, &value);
            return Ok(None);
        }
        let (first, mut upper) = Layout::<K, V>::split_leaf(words);
        let half = if key < first { words } else { &mut upper[..] };
        let index = Layout::<K, V>::find(half, &key).unwrap_or_else(|index| index);
        Layout::<K, V>::insert(half, index, &key, &value);
        let upper = tx.allocate(&upper)?;
        self.add_child(tx, way, leaf, first, upper)?;
        Ok(None)
    }

    /// Inserts a new node, which has the keys from `first` on, behind the node from which it was
    /// split.
    fn add_child(
        &self,
        tx: &mut Transaction<'_, '_>,
        mut way: Vec<Step>,
        mut lower: u64,
        mut first: K,
        mut upper: u64,
    ) -> Result<(), Stop> {
        while let Some(Step { node, child }) = way.pop() {
            let words = tx.lock_words(node, Self::INNER_WORDS)?;
            if Layout::<K, V>::len(words) < Layout::<K, V>::INNER_KEYS {
                Layout::<K, V>::insert_child(words, child, &first, upper);
                return Ok(());
            }
            let (middle, mut new) = Layout::<K, V>::split_inner(words);
            let kept = Layout::<K, V>::len(words);
            match child.checked_sub(kept + 1) {
                None => Layout::<K, V>::insert_child(words, child, &first, upper),
                Some(child) => Layout::<K, V>::insert_child(&mut new, child, &first, upper),
            }
            (lower, first, upper) = (node | INNER, middle, tx.allocate(&new)? | INNER);
        }
        let top = tx.allocate(&Layout::<K, V>::new_top(&first, [lower, upper]))?;
        tx.lock_words(self.root, ROOT_WORDS)?[0] = top | INNER;
        Ok(())
    }

    /// Changes the value of a key; returns whether the map has the key.
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
        let leaf = self.find(tx, key).leaf;
        let Ok(index) = Layout::<K, V>::find(tx.object(leaf, Self::LEAF_WORDS), key) else {
            tx.note(leaf, Self::LEAF_WORDS);
            return Ok(false);
        };
        let words = tx.lock_words(leaf, Self::LEAF_WORDS)?;
        let mut value = Layout::<K, V>::value(words, index);
        change(&mut value);
        Layout::<K, V>::set_value(words, index, &value);
        Ok(true)
    }

    /// Removes a key, and returns its value.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    pub fn remove(&self, tx: &mut Transaction<'_, '_>, key: &K) -> Result<Option<V>, Stop> {
        let Spot { way, leaf } = self.find(tx, key);
        let Ok(index) = Layout::<K, V>::find(tx.object(leaf, Self::LEAF_WORDS), key) else {
            tx.note(leaf, Self::LEAF_WORDS);
            return Ok(None);
        };
        let words = tx.lock_words(leaf, Self::LEAF_WORDS)?;
        let value = Layout::<K, V>::value(words, index);
        Layout::<K, V>::remove(words, index);
        if Layout::<K, V>::len(words) == 0 && !way.is_empty() {
            tx.free_words(leaf, Self::LEAF_WORDS)?;
            self.remove_child(tx, way)?;
        }
        Ok(Some(value))
    }

    /// Removes the child on the path, which has ended, and nodes that have no other child.
    fn remove_child(&self, tx: &mut Transaction<'_, '_>, mut way: Vec<Step>) -> Result<(), Stop> {
        while let Some(Step { node, child }) = way.pop() {
            let words = tx.lock_words(node, Self::INNER_WORDS)?;
            if Layout::<K, V>::len(words) == 0 {
                tx.free_words(node, Self::INNER_WORDS)?;
                continue;
            }
            Layout::<K, V>::remove_child(words, child);
            let only = Layout::<K, V>::child(words, 0);
            if Layout::<K, V>::len(words) == 0 && way.is_empty() {
                tx.free_words(node, Self::INNER_WORDS)?;
                tx.lock_words(self.root, ROOT_WORDS)?[0] = only;
            }
            return Ok(());
        }
        let leaf = tx.allocate(&Layout::<K, V>::new_leaf())?;
        tx.lock_words(self.root, ROOT_WORDS)?[0] = leaf;
        Ok(())
    }

    /// The keys of a range with their values, in order.
    ///
    /// A range that begins behind its end is empty.
    pub fn range<'s, S: Session>(
        &self,
        session: &'s S,
        range: impl RangeBounds<K>,
    ) -> Range<'s, S, K, V> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        Range::new(session, self.top(session), bounds)
    }

    /// The least key, with its value.
    pub fn first(&self, session: &impl Session) -> Option<(K, V)> {
        self.range(session, ..).next()
    }

    /// How many keys there are: counts them.
    pub fn len(&self, session: &impl Session) -> usize {
        self.range(session, ..).count()
    }

    /// Whether there is no key.
    pub fn is_empty(&self, session: &impl Session) -> bool {
        self.first(session).is_none()
    }
}

impl<K, V> std::fmt::Debug for OrderedMap<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OrderedMap").field("root", &self.root).finish_non_exhaustive()
    }
}

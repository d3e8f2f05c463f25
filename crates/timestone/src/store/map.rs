//! A map of keys and values of any plain types.

use super::catalog;
use super::member::Member;
use super::transaction::{Session, Stop, Transaction};
use super::trie::{NODE_WORDS, Trie, Typed};
use crate::Persist;
use crate::error::Result;

/// Keys and values in a [`Store`](super::Store), by name. Copies of it are the same map.
pub struct Map<K, V>(Trie<Typed<K, V>>);

impl<K, V> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Map<K, V> {}

impl<K: Persist, V: Persist> Map<K, V> {
    pub(super) fn open(member: &mut Member<'_>, name: &str, seed: u64) -> Result<Self> {
        let schema = Self::schema();
        let root = member.run(|tx| catalog::root(tx, name, &schema, &[0; NODE_WORDS]))?;
        Ok(Self::at(root, seed))
    }

    /// The map with this node at the top.
    pub(super) fn at(root: u64, seed: u64) -> Self {
        Self(Trie { root, seed, shape: Typed::NEW })
    }

    /// What the catalog says of it.
    pub(super) fn schema() -> String {
        format!("a map from {} to {}", catalog::type_text::<K>(), catalog::type_text::<V>())
    }

    /// The value of a key.
    ///
    /// Time: one object for each four bits of the hash that the map needs to distinguish its keys.
    #[inline]
    pub fn get(&self, session: &impl Session, key: &K) -> Option<V> {
        self.0.get(session, key.as_bytes()).map(|leaf| Self::value(self.0.value(leaf)))
    }

    fn value(bytes: &[u8]) -> V {
        V::read_from_bytes(bytes).expect("a leaf has room for its value")
    }

    fn key(bytes: &[u8]) -> K {
        K::read_from_bytes(bytes).expect("a leaf has room for its key")
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
        let mut before = None;
        let keep = |bytes: &[u8]| before = Some(Self::value(bytes));
        self.0.insert(tx, key.as_bytes(), value.as_bytes(), keep)?;
        Ok(before)
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
        self.0.update(tx, key.as_bytes(), |bytes| {
            let mut value = Self::value(bytes);
            change(&mut value);
            bytes.copy_from_slice(value.as_bytes());
        })
    }

    /// Removes a key, and returns its value.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    pub fn remove(&self, tx: &mut Transaction<'_, '_>, key: &K) -> Result<Option<V>, Stop> {
        let mut before = None;
        self.0.remove(tx, key.as_bytes(), |bytes| before = Some(Self::value(bytes)))?;
        Ok(before)
    }

    /// Visits all keys and values, in no order.
    pub fn for_each(&self, session: &impl Session, mut visit: impl FnMut(K, V)) {
        let trie = &self.0;
        trie.for_each(session, |leaf| {
            visit(Self::key(trie.key(leaf)), Self::value(trie.value(leaf)));
        });
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
        f.debug_struct("Map").field("root", &self.0.root).finish_non_exhaustive()
    }
}

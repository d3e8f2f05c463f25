//! A set: a map without values.

use super::map::Map;
use super::member::Member;
use super::transaction::{Session, Stop, Transaction};
use crate::Persist;
use crate::error::Result;

/// Keys in a [`Store`](super::Store), by name. Copies of it are the same set.
///
/// In the files it is a [`Map`] to `()`, and can be opened as that.
pub struct Set<K>(Map<K, ()>);

impl<K> Clone for Set<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Set<K> {}

impl<K: Persist> Set<K> {
    pub(super) fn open(member: &mut Member<'_>, name: &str, seed: u64) -> Result<Self> {
        Map::open(member, name, seed).map(Self)
    }

    pub(super) fn of(map: Map<K, ()>) -> Self {
        Self(map)
    }

    /// Whether a key is there.
    pub fn contains(&self, session: &impl Session, key: &K) -> bool {
        self.0.get(session, key).is_some()
    }

    /// Inserts a key; returns whether it was absent.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`]; [`Error::Full`](crate::Error::Full) if the
    /// heap is full.
    pub fn insert(&self, tx: &mut Transaction<'_, '_>, key: K) -> Result<bool, Stop> {
        Ok(self.0.insert(tx, key, ())?.is_none())
    }

    /// Removes a key; returns whether it was there.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    pub fn remove(&self, tx: &mut Transaction<'_, '_>, key: &K) -> Result<bool, Stop> {
        Ok(self.0.remove(tx, key)?.is_some())
    }

    /// Visits all keys, in no order.
    pub fn for_each(&self, session: &impl Session, mut visit: impl FnMut(K)) {
        self.0.for_each(session, |key, ()| visit(key));
    }

    /// How many keys there are: counts them.
    pub fn len(&self, session: &impl Session) -> usize {
        self.0.len(session)
    }

    /// Whether there is no key.
    pub fn is_empty(&self, session: &impl Session) -> bool {
        self.0.is_empty(session)
    }
}

impl<K> std::fmt::Debug for Set<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Set").field(&self.0).finish()
    }
}

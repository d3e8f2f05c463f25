//! A map without a handle: each call borrows one from the space.

use core::borrow::Borrow;
use core::hash::BuildHasher;

use super::Space;
use super::entry::Entry;
use super::map::{HashMap, Map};
use crate::collections::versioned::btree::BPlus;
use crate::collections::versioned::{Datum, Ordered, Seek, Structure};
use crate::session::{Open, Sessions, View};

/// Each method uses a handle that the space keeps: see [`Access`](super::Access) for their
/// descriptions.
impl<K: Datum, V: Datum, P: Structure, M: Sessions> Map<K, V, P, M> {
    /// A clone of the key's value.
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        V: Clone,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.space().with(|me| self.by(me).get(key))
    }

    /// Calls a function with the key's value, in a session, and returns its result.
    pub fn get_with<Q, R>(&self, key: &Q, f: impl FnOnce(&V) -> R) -> Option<R>
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.space().with(|me| self.by(me).get_with(key, f))
    }

    /// Whether the key is there.
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.space().with(|me| self.by(me).contains_key(key))
    }

    /// Gives the key a value; returns a clone of the key's old value.
    pub fn insert(&self, key: K, value: V) -> Option<V>
    where
        V: Clone,
        P: Seek<K, K>,
    {
        self.space().with(|me| self.by(me).insert(key, value))
    }

    /// Gives the key a value; returns whether it had one.
    pub fn set(&self, key: K, value: V) -> bool
    where
        P: Seek<K, K>,
    {
        self.space().with(|me| self.by(me).set(key, value))
    }

    /// Gives the key a value if it has none; returns whether it had none.
    pub fn insert_new(&self, key: K, value: V) -> bool
    where
        P: Seek<K, K>,
    {
        self.space().with(|me| self.by(me).insert_new(key, value))
    }

    /// A clone of the key's value. If it has none, a new value is made; it is dropped if another
    /// thread inserts first.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V
    where
        V: Clone,
        P: Seek<K, K>,
    {
        self.space().with(|me| self.by(me).get_or_insert_with(key, make))
    }

    /// Removes the key; returns a clone of its value.
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        V: Clone,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.space().with(|me| self.by(me).remove(key))
    }

    /// Takes the key out; returns whether it was there.
    pub fn delete<Q>(&self, key: &Q) -> bool
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.space().with(|me| self.by(me).delete(key))
    }

    /// Removes the key if the function returns true for its value; returns whether it did. The
    /// function is called again if another thread changes the key first.
    pub fn remove_if<Q>(&self, key: &Q, is: impl FnMut(&V) -> bool) -> bool
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.space().with(|me| self.by(me).remove_if(key, is))
    }

    /// Replaces the key's value by one computed from it; returns whether the key was there. The
    /// function is called again if another thread changes the key first.
    pub fn update<Q>(&self, key: &Q, f: impl FnMut(&V) -> V) -> bool
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.space().with(|me| self.by(me).update(key, f))
    }

    /// Does the same, and gives a value to a key that has none.
    pub fn update_or_insert(&self, key: K, f: impl FnMut(Option<&V>) -> V)
    where
        P: Seek<K, K>,
    {
        self.space().with(|me| self.by(me).update_or_insert(key, f));
    }

    /// An entry for the key, whether or not it is in the map; the next call decides what happens to
    /// it.
    ///
    /// ```
    /// let words = manycore::collections::space::BTreeMap::<&str, u32>::default();
    /// for word in "to be or not to be".split(' ') {
    ///     words.entry(word).and_modify(|count| count + 1).or_insert(1);
    /// }
    /// assert_eq!(words.entry("be").or_default(), 2);
    /// ```
    pub fn entry(&self, key: K) -> Entry<&Self>
    where
        P: Seek<K, K>,
    {
        Entry::new(self, key)
    }

    /// Gives the key another value if it has this one.
    ///
    /// # Errors
    ///
    /// A clone of the present value, or none if the key is missing; and the new value, which was
    /// not stored.
    pub fn compare_exchange<Q>(&self, key: &Q, old: &V, new: V) -> Result<(), (Option<V>, V)>
    where
        V: Clone + PartialEq,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.space().with(|me| self.by(me).compare_exchange(key, old, new))
    }

    /// Removes every key for which the function returns false. This is not one atomic step, but one
    /// for each key; keys that are inserted meanwhile may stay without a call of the function. The
    /// function may see a key twice, and runs in a session.
    pub fn retain(&self, stays: impl FnMut(&K, &V) -> bool)
    where
        K: Clone,
        P: Seek<K, K>,
    {
        self.space().with(|me| self.by(me).retain(stays));
    }

    /// Removes all present keys. This is not one atomic step, but one for each key.
    pub fn clear(&self)
    where
        K: Clone,
        P: Seek<K, K>,
    {
        self.space().with(|me| self.by(me).clear());
    }

    /// The number of keys at one moment. They are counted, which takes some nanoseconds for each.
    pub fn len(&self) -> usize {
        self.space().with(|me| self.by(me).len())
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.space().with(|me| self.by(me).is_empty())
    }
}

impl<K, V, M, const LEAF: usize, const INNER: usize> Map<K, V, BPlus<LEAF, INNER>, M>
where
    K: Datum + Ord,
    V: Datum,
    M: Sessions,
{
    /// Checks all nodes of the tree, for tests. Returns the number of leaves.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub fn check(&self) -> usize {
        let leaves = self.space().snapshot(|now| {
            // SAFETY: `Snapshot` exists only while its session is open, which is one of this map's
            // space.
            unsafe { BPlus::<LEAF, INNER>::check::<K, V, _>(*self.parts(), now.session) }
        });
        leaves.unwrap_or_else(|wrong| panic!("a tree that is not whole: {wrong}"))
    }
}

impl<K, V, M, const LEAF: usize, const INNER: usize> Map<K, V, BPlus<LEAF, INNER>, M>
where
    K: Datum + Ord + Clone,
    V: Datum + Clone,
    M: Sessions,
{
    /// Creates a map from sorted entries, in a space that may have other collections. Its nodes are
    /// full, and other threads see all of them at once. All happens in a session: meanwhile, old
    /// versions of everything that others change in the space are kept.
    ///
    /// # Panics
    ///
    /// If a key is not larger than the one before.
    pub fn from_sorted(space: &Space<M>, entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let map = Self::new_in(space);
        space.with(|me| {
            let open = Open::begin(&mut me.raw, View::Snapshot);
            // SAFETY: `open` has begun the session, on a handle of the map's space; no other thread
            // has the map. If this fails, the session is aborted.
            let loaded =
                unsafe { BPlus::<LEAF, INNER>::load(*map.parts(), &mut *open.handle, entries) };
            let done = loaded.and_then(|()| open.commit());
            done.expect("no other thread has the map, and so there is no conflict");
        });
        map
    }
}

/// Methods of maps in the order of their keys.
impl<K: Datum, V: Datum, P: Structure, M: Sessions> Map<K, V, P, M> {
    /// Clones of the smallest key and its value.
    pub fn first(&self) -> Option<(K, V)>
    where
        K: Clone,
        V: Clone,
        P: Ordered<K, K>,
    {
        self.space().snapshot(|now| now.first(self).map(|(k, v)| (k.clone(), v.clone())))
    }

    /// Clones of the largest key and its value.
    pub fn last(&self) -> Option<(K, V)>
    where
        K: Clone,
        V: Clone,
        P: Ordered<K, K>,
    {
        self.space().snapshot(|now| now.last(self).map(|(k, v)| (k.clone(), v.clone())))
    }

    /// Calls `f` with the keys of a range and their values, in order, until it returns false. All
    /// are of one moment; `f` runs in a session.
    ///
    /// # Panics
    ///
    /// If the range begins after its end, as of the standard library's map.
    pub fn range<Q>(&self, range: impl core::ops::RangeBounds<Q>, mut f: impl FnMut(&K, &V) -> bool)
    where
        K: Borrow<Q>,
        P: Ordered<K, Q>,
        Q: ?Sized,
    {
        self.space().snapshot(|now| _ = now.range(self, range).all(|(key, value)| f(key, value)));
    }
}

impl<K: Datum, V: Datum, S, M: Sessions> HashMap<K, V, S, M>
where
    S: BuildHasher + Send + Sync + 'static,
{
    /// How many buckets there are.
    pub fn buckets(&self) -> usize {
        self.parts().buckets()
    }
}

impl<K: Datum, V: Datum, P: Seek<K, K>, M: Sessions> Extend<(K, V)> for &Map<K, V, P, M> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| _ = self.set(key, value));
    }
}

impl<K: Datum, V: Datum, P: Seek<K, K>, M: Sessions> Extend<(K, V)> for Map<K, V, P, M> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        (&*self).extend(entries);
    }
}

impl<K: Datum, V: Datum, P: Seek<K, K>, M: Sessions + Default> FromIterator<(K, V)>
    for Map<K, V, P, M>
where
    P::Settings: Default,
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let map = Self::new();
        (&map).extend(entries);
        map
    }
}

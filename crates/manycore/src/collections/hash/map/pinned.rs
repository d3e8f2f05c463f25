//! A map with a pinned region around its operations, which return references to its contents.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::{HashMap, Iter, MapEntry, is_of};
use crate::reclaim::{Guard, Section};

/// A map whose operations return references, which are valid as long as this value lives.
///
/// This value is a section of [`reclaim`](crate::reclaim): while it lives, nothing that is removed
/// from the map is freed. So use it for a few operations, not for a thread's life. It cannot be
/// sent to another thread.
#[must_use = "the section ends when this is dropped, at once if it is not kept"]
pub struct Pinned<'a, K, V, S> {
    map: &'a HashMap<K, V, S>,
    held: Held<'a>,
}

enum Held<'a> {
    Own(Section<'a>),
    Lent(Guard<'a>),
}

impl<K, V, S> HashMap<K, V, S> {
    /// The map, with one section around several operations.
    pub fn pin(&self) -> Pinned<'_, K, V, S> {
        Pinned { map: self, held: Held::Own(self.domain.register().into_section()) }
    }
}

impl<'a, K, V, S> Pinned<'a, K, V, S> {
    #[inline]
    pub(super) fn lent(map: &'a HashMap<K, V, S>, guard: Guard<'a>) -> Self {
        Self { map, held: Held::Lent(guard) }
    }

    /// Calls `f` with the map and the section's guard.
    #[inline]
    fn with<'p, R>(&'p self, f: impl FnOnce(&'p HashMap<K, V, S>, &'p Guard<'p>) -> R) -> R {
        match &self.held {
            Held::Lent(guard) => f(self.map, guard),
            Held::Own(section) => {
                let guard = section.guard();
                // SAFETY: the section lasts as long as `'p`, and so do references that the map
                // returns for the guard, which is one of several guards of the section. `f` returns
                // a reference into the map, and not the guard.
                f(self.map, unsafe { &*(&raw const guard).cast() })
            }
        }
    }

    /// An iterator over the keys and values, in no order. It returns a key that is in the map all
    /// the time exactly once, and a key that is inserted or removed meanwhile at most once.
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.with(|map, guard| Iter::new(map.tables.first(guard)))
    }

    /// Counts the keys, which takes a nanosecond or two for each. If other threads write meanwhile,
    /// the result is approximate.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether the map has no keys.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Pinned<'_, K, V, S> {
    #[inline]
    fn entry_of<Q>(&self, key: &Q) -> Option<&MapEntry<K, V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.with(|map, guard| map.find(map.hasher.hash_one(key), key, guard))
    }

    /// The value of a key.
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.entry_of(key).map(|entry| &entry.value)
    }

    /// The key as stored in the map, and its value.
    pub fn get_key_value<Q>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.entry_of(key).map(|entry| (&entry.key, &entry.value))
    }

    /// Whether the map has the key.
    #[inline]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.entry_of(key).is_some()
    }
}

impl<K: Hash + Eq + Send, V: Send, S: BuildHasher> Pinned<'_, K, V, S> {
    /// Sets a key's value. Returns the old value if there is one.
    #[inline]
    pub fn insert(&self, key: K, value: V) -> Option<&V> {
        self.with(|map, guard| map.put(key, value, false, guard)).1.map(|old| &old.value)
    }

    /// Inserts a key unless the map has it. Returns the existing value if there is one.
    #[inline]
    pub fn insert_new(&self, key: K, value: V) -> Option<&V> {
        self.with(|map, guard| map.put(key, value, true, guard)).1.map(|old| &old.value)
    }

    /// The value of a key. If the map does not have the key, inserts it with the value that `make`
    /// returns. If another thread inserts the key first, that thread's value counts, and the one of
    /// `make` is dropped.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> &V {
        let there = self.entry_of(&key);
        &there.unwrap_or_else(|| self.with(|map, guard| map.put(key, make(), true, guard)).0).value
    }

    /// The value of a key. If the map does not have the key, inserts it with this value.
    pub fn get_or_insert(&self, key: K, value: V) -> &V {
        &self.with(|map, guard| map.put(key, value, true, guard)).0.value
    }

    /// Removes a key. Returns its value.
    #[inline]
    pub fn remove<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes a key. Returns it with its value.
    #[inline]
    pub fn remove_entry<Q>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let old = self.with(|map, guard| {
            let hash = map.hasher.hash_one(key);
            map.find(hash, key, guard)?;
            map.take(hash, |entry| is_of(entry, key), guard)
        })?;
        Some((&old.key, &old.value))
    }

    /// Removes a key if `is` returns true for its value. Returns the removed value.
    pub fn remove_if<Q>(&self, key: &Q, mut is: impl FnMut(&V) -> bool) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        loop {
            let there = self.entry_of(key).filter(|entry| is(&entry.value))?;
            if self.take(there) {
                return Some(&there.value);
            }
        }
    }

    /// Removes an entry that was found in this section; returns whether it was still in the map.
    fn take(&self, there: &MapEntry<K, V>) -> bool {
        self.with(|map, guard| {
            let hash = map.hasher.hash_one(&there.key);
            map.take(hash, |entry| core::ptr::eq(entry, there), guard).is_some()
        })
    }

    /// Removes the keys for which `stays` returns false. A key that is inserted meanwhile may stay
    /// without a call of `stays`.
    pub fn retain(&self, mut stays: impl FnMut(&K, &V) -> bool) {
        for there in self.with(|map, guard| Iter::new(map.tables.first(guard))).entries() {
            if !stays(&there.key, &there.value) {
                self.take(there);
            }
        }
    }

    /// Removes all keys that are in the map now.
    pub fn clear(&self) {
        self.retain(|_, _| false);
    }

    /// Atomically replaces a key's value by the result of `f`. Returns the new value; `None` if the
    /// map does not have the key. `f` is called again if another thread changes the value first.
    pub fn update<Q>(&self, key: &Q, mut f: impl FnMut(&V) -> V) -> Option<&V>
    where
        K: Borrow<Q> + Clone,
        Q: Hash + Eq + ?Sized,
    {
        loop {
            let there = self.entry_of(key)?;
            let new = MapEntry { key: there.key.clone(), value: f(&there.value) };
            if let Some(new) = self.with(|map, guard| map.exchange(there, new, guard)) {
                return Some(&new.value);
            }
        }
    }

    /// As [`update`](Self::update), but a key that the map does not have is inserted.
    pub fn update_or_insert(&self, key: K, mut f: impl FnMut(Option<&V>) -> V) -> &V
    where
        K: Clone,
    {
        loop {
            if let Some(new) = self.update(&key, |value| f(Some(value))) {
                return new;
            }
            let (now, before) = self.with(|map, guard| map.put(key.clone(), f(None), true, guard));
            if before.is_none() {
                return &now.value;
            }
        }
    }

    /// Replaces a key's value by `new` if it equals `old`.
    ///
    /// # Errors
    ///
    /// The present value, or `None` if the map does not have the key; and `new`, which was not
    /// stored.
    pub fn compare_exchange<Q>(&self, key: &Q, old: &V, new: V) -> Result<&V, (Option<&V>, V)>
    where
        K: Borrow<Q> + Clone,
        V: PartialEq + Clone,
        Q: Hash + Eq + ?Sized,
    {
        loop {
            let there = match self.entry_of(key) {
                Some(there) if there.value == *old => there,
                other => return Err((other.map(|entry| &entry.value), new)),
            };
            let entry = MapEntry { key: there.key.clone(), value: new.clone() };
            if self.with(|map, guard| map.exchange(there, entry, guard)).is_some() {
                return Ok(&there.value);
            }
        }
    }
}

impl<'p, K, V, S> IntoIterator for &'p Pinned<'_, K, V, S> {
    type Item = (&'p K, &'p V);
    type IntoIter = Iter<'p, K, V>;

    fn into_iter(self) -> Iter<'p, K, V> {
        self.iter()
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S> fmt::Debug for Pinned<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Each operation runs in a section of its own, and returns clones.
impl<K: Hash + Eq, V, S: BuildHasher> HashMap<K, V, S> {
    /// The value of a key.
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        V: Clone,
        Q: Hash + Eq + ?Sized,
    {
        self.get_with(key, V::clone)
    }

    /// The result of `f` for the value of a key.
    pub fn get_with<Q, R>(&self, key: &Q, f: impl FnOnce(&V) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.pin().get(key).map(f)
    }

    /// Whether the map has the key.
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.pin().contains_key(key)
    }

    /// The number of keys: see [`Pinned::len`].
    pub fn len(&self) -> usize {
        self.pin().len()
    }

    /// Whether the map has no keys.
    pub fn is_empty(&self) -> bool {
        self.pin().is_empty()
    }
}

/// Each operation runs in a section of its own, and returns clones.
impl<K: Hash + Eq + Send, V: Send, S: BuildHasher> HashMap<K, V, S> {
    /// Sets a key's value. Returns the old value if there is one.
    pub fn insert(&self, key: K, value: V) -> Option<V>
    where
        V: Clone,
    {
        self.pin().insert(key, value).cloned()
    }

    /// Inserts a key unless the map has it; returns whether it was inserted.
    pub fn insert_new(&self, key: K, value: V) -> bool {
        self.pin().insert_new(key, value).is_none()
    }

    /// The value of a key. If the map does not have the key, inserts it with the value that `make`
    /// returns: see [`Pinned::get_or_insert_with`].
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V
    where
        V: Clone,
    {
        self.pin().get_or_insert_with(key, make).clone()
    }

    /// Removes a key. Returns its value.
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        V: Clone,
        Q: Hash + Eq + ?Sized,
    {
        self.pin().remove(key).cloned()
    }

    /// Removes a key if `is` returns true for its value; returns whether it was removed.
    pub fn remove_if<Q>(&self, key: &Q, is: impl FnMut(&V) -> bool) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.pin().remove_if(key, is).is_some()
    }

    /// Replaces a key's value by the result of `f`: see [`Pinned::update`]. Returns whether the map
    /// has the key.
    pub fn update<Q>(&self, key: &Q, f: impl FnMut(&V) -> V) -> bool
    where
        K: Borrow<Q> + Clone,
        Q: Hash + Eq + ?Sized,
    {
        self.pin().update(key, f).is_some()
    }

    /// Removes the keys for which `stays` returns false: see [`Pinned::retain`].
    pub fn retain(&self, stays: impl FnMut(&K, &V) -> bool) {
        self.pin().retain(stays);
    }

    /// Removes all keys that are in the map now.
    pub fn clear(&self) {
        self.pin().clear();
    }
}

impl<K: Hash + Eq + Send, V: Send, S: BuildHasher> Extend<(K, V)> for HashMap<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        (&*self).extend(entries);
    }
}

/// By a shared reference, so other threads may use the map meanwhile.
impl<K: Hash + Eq + Send, V: Send, S: BuildHasher> Extend<(K, V)> for &HashMap<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let handle = self.handle();
        for (key, value) in entries {
            handle.pin().insert(key, value);
        }
    }
}

impl<K: Hash + Eq + Send, V: Send, S: BuildHasher + Default> FromIterator<(K, V)>
    for HashMap<K, V, S>
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        let map = Self::with_capacity_and_hasher(entries.size_hint().0, S::default());
        (&map).extend(entries);
        map
    }
}

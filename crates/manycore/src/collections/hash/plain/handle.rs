//! A thread's operations on a map of plain data.

use core::fmt;
use core::hash::{BuildHasher, Hash};

use bytemuck::NoUninit;

use super::{PlainHashMap, PlainIter, RandomState};
use crate::reclaim::{Guard, Handle};
use crate::{ConcurrentMap, ConcurrentSet, MapHandle, SetHandle};

/// A thread's handle of a [`PlainHashMap`]. Operations by a handle take some nanoseconds less than
/// those of the map itself. It cannot be sent to another thread.
pub struct PlainHashMapHandle<'a, K: NoUninit, V: NoUninit, S = RandomState> {
    map: &'a PlainHashMap<K, V, S>,
    handle: Handle<'a>,
}

impl<K: NoUninit, V: NoUninit, S> PlainHashMap<K, V, S> {
    /// The calling thread's handle.
    #[inline]
    pub fn handle(&self) -> PlainHashMapHandle<'_, K, V, S> {
        PlainHashMapHandle { map: self, handle: self.domain.register() }
    }
}

impl<K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher> PlainHashMapHandle<'_, K, V, S> {
    /// Calls `f` with the map, the key's hash, and the guard of a section.
    #[inline]
    fn with<R>(&self, key: &K, f: impl FnOnce(&PlainHashMap<K, V, S>, u64, &Guard) -> R) -> R {
        f(self.map, self.map.hasher.hash_one(key), &self.handle.pin())
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        self.with(key, |map, hash, guard| map.find(hash, key, guard))
    }

    /// Whether the map has the key.
    #[inline]
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Sets a key's value. Returns the old value if there is one.
    #[inline]
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        self.with(&key, |map, hash, guard| map.put(hash, &(key, value), false, guard))
    }

    /// Inserts a key unless the map has it. Returns the existing value if there is one.
    #[inline]
    pub fn insert_new(&self, key: K, value: V) -> Option<V> {
        self.with(&key, |map, hash, guard| {
            let there = map.find(hash, &key, guard);
            there.or_else(|| map.put(hash, &(key, value), true, guard))
        })
    }

    /// The value of a key. If the map does not have the key, inserts it with the value that `make`
    /// returns. If another thread inserts the key first, that thread's value counts, and the one of
    /// `make` is dropped.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        self.get(&key).unwrap_or_else(|| {
            let value = make();
            self.insert_new(key, value).unwrap_or(value)
        })
    }

    /// Removes a key. Returns its value.
    #[inline]
    pub fn remove(&self, key: &K) -> Option<V> {
        self.with(key, |map, hash, guard| {
            map.find(hash, key, guard)?;
            map.take(hash, key, None, guard)
        })
    }

    /// Removes a key if `is` returns true for its value. Returns the value.
    pub fn remove_if(&self, key: &K, mut is: impl FnMut(&V) -> bool) -> Option<V> {
        loop {
            let value = self.get(key).filter(&mut is)?;
            let taken = self.with(key, |map, hash, guard| map.take(hash, key, Some(&value), guard));
            if taken.is_some() {
                return taken;
            }
        }
    }

    /// Atomically replaces a key's value by the result of `f`. Returns the new value; `None` if the
    /// map does not have the key. `f` is called again if another thread changes the value first.
    #[inline]
    pub fn update(&self, key: &K, mut f: impl FnMut(V) -> V) -> Option<V> {
        loop {
            let old = self.get(key)?;
            let new = f(old);
            if self.with(key, |map, hash, guard| map.exchange(hash, key, &old, &new, guard)) {
                return Some(new);
            }
        }
    }

    /// As [`update`](Self::update), but a key that the map does not have is inserted.
    #[inline]
    pub fn update_or_insert(&self, key: K, mut f: impl FnMut(Option<V>) -> V) -> V {
        loop {
            if let Some(new) = self.update(&key, |value| f(Some(value))) {
                return new;
            }
            let first = f(None);
            if self.insert_new(key, first).is_none() {
                return first;
            }
        }
    }

    /// Replaces a key's value by `new` if it equals `old`. Returns the replaced value.
    ///
    /// # Errors
    ///
    /// The present value; `None` if the map does not have the key.
    pub fn compare_exchange(&self, key: &K, old: V, new: V) -> Result<V, Option<V>>
    where
        V: PartialEq,
    {
        loop {
            let there = self.get(key).ok_or(None)?;
            if there != old {
                return Err(Some(there));
            }
            if self.with(key, |map, hash, guard| map.exchange(hash, key, &there, &new, guard)) {
                return Ok(there);
            }
        }
    }

    /// Removes the keys for which `stays` returns false. A key that is inserted meanwhile may stay
    /// without a call of `stays`.
    pub fn retain(&self, mut stays: impl FnMut(&K, &V) -> bool) {
        for (key, value) in self {
            let mut there = Some(value);
            while let Some(value) = there.filter(|value| !stays(&key, value)) {
                let old = Some(&value);
                let taken = self.with(&key, |map, hash, guard| map.take(hash, &key, old, guard));
                // Another thread has changed the value, so `stays` has to see the new one.
                there = if taken.is_some() { None } else { self.get(&key) };
            }
        }
    }

    /// Removes all keys that are in the map now.
    pub fn clear(&self) {
        self.retain(|_, _| false);
    }
}

impl<K: NoUninit, V: NoUninit, S> PlainHashMapHandle<'_, K, V, S> {
    /// An iterator over the keys and values, in no order. It returns a key that is in the map all
    /// the time exactly once, and a key that is inserted or removed meanwhile at most once.
    pub fn iter(&self) -> PlainIter<'_, K, V> {
        PlainIter::new(&self.map.tables, self.handle.pin())
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

impl<'p, K: NoUninit, V: NoUninit, S> IntoIterator for &'p PlainHashMapHandle<'_, K, V, S> {
    type Item = (K, V);
    type IntoIter = PlainIter<'p, K, V>;

    fn into_iter(self) -> PlainIter<'p, K, V> {
        self.iter()
    }
}

impl<K: NoUninit + fmt::Debug, V: NoUninit + fmt::Debug, S> fmt::Debug
    for PlainHashMapHandle<'_, K, V, S>
{
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Each of these operations makes a [`PlainHashMapHandle`] for itself.
impl<K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher> PlainHashMap<K, V, S> {
    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        self.handle().get(key)
    }

    /// Whether the map has the key.
    #[inline]
    pub fn contains_key(&self, key: &K) -> bool {
        self.handle().contains_key(key)
    }

    /// Sets a key's value. Returns the old value if there is one.
    #[inline]
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        self.handle().insert(key, value)
    }

    /// Inserts a key unless the map has it. Returns the existing value if there is one.
    #[inline]
    pub fn insert_new(&self, key: K, value: V) -> Option<V> {
        self.handle().insert_new(key, value)
    }

    /// The value of a key. If the map does not have the key, inserts it with the value that `make`
    /// returns: see [`PlainHashMapHandle::get_or_insert_with`].
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        self.handle().get_or_insert_with(key, make)
    }

    /// Removes a key. Returns its value.
    #[inline]
    pub fn remove(&self, key: &K) -> Option<V> {
        self.handle().remove(key)
    }

    /// Removes a key if `is` returns true for its value. Returns the value.
    pub fn remove_if(&self, key: &K, is: impl FnMut(&V) -> bool) -> Option<V> {
        self.handle().remove_if(key, is)
    }

    /// Replaces a key's value by the result of `f`: see [`PlainHashMapHandle::update`].
    pub fn update(&self, key: &K, f: impl FnMut(V) -> V) -> Option<V> {
        self.handle().update(key, f)
    }

    /// As [`update`](Self::update), but a key that the map does not have is inserted.
    pub fn update_or_insert(&self, key: K, f: impl FnMut(Option<V>) -> V) -> V {
        self.handle().update_or_insert(key, f)
    }

    /// Replaces a key's value by `new` if it equals `old`. Returns the replaced value.
    ///
    /// # Errors
    ///
    /// The present value; `None` if the map does not have the key.
    pub fn compare_exchange(&self, key: &K, old: V, new: V) -> Result<V, Option<V>>
    where
        V: PartialEq,
    {
        self.handle().compare_exchange(key, old, new)
    }

    /// Removes the keys for which `stays` returns false: see [`PlainHashMapHandle::retain`].
    pub fn retain(&self, stays: impl FnMut(&K, &V) -> bool) {
        self.handle().retain(stays);
    }

    /// Removes all keys that are in the map now.
    pub fn clear(&self) {
        self.handle().clear();
    }

    /// The number of keys: see [`PlainHashMapHandle::len`].
    pub fn len(&self) -> usize {
        self.handle().len()
    }

    /// Whether the map has no keys.
    pub fn is_empty(&self) -> bool {
        self.handle().is_empty()
    }
}

impl<K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher> Extend<(K, V)>
    for PlainHashMap<K, V, S>
{
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        (&*self).extend(entries);
    }
}

/// By a shared reference, so other threads may use the map meanwhile.
impl<K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher> Extend<(K, V)>
    for &PlainHashMap<K, V, S>
{
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let handle = self.handle();
        for (key, value) in entries {
            handle.insert(key, value);
        }
    }
}

impl<K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher + Default> FromIterator<(K, V)>
    for PlainHashMap<K, V, S>
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        let map = Self::with_capacity_and_hasher(entries.size_hint().0, S::default());
        (&map).extend(entries);
        map
    }
}

impl<K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher + Sync> ConcurrentMap<K, V>
    for PlainHashMap<K, V, S>
where
    Self: Sync,
{
    type Handle<'a>
        = PlainHashMapHandle<'a, K, V, S>
    where
        Self: 'a;

    fn handle(&self) -> PlainHashMapHandle<'_, K, V, S> {
        self.handle()
    }
}

impl<K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher> MapHandle<K, V>
    for PlainHashMapHandle<'_, K, V, S>
{
    #[inline]
    fn get(&mut self, key: &K) -> Option<V> {
        Self::get(self, key)
    }

    #[inline]
    fn insert(&mut self, key: K, value: V) -> Option<V> {
        Self::insert(self, key, value)
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<V> {
        Self::remove(self, key)
    }
}

impl<K: NoUninit + Hash + Eq, S: BuildHasher> ConcurrentSet<K> for PlainHashMap<K, (), S>
where
    Self: Sync,
{
    type Handle<'a>
        = PlainHashMapHandle<'a, K, (), S>
    where
        Self: 'a;

    fn handle(&self) -> PlainHashMapHandle<'_, K, (), S> {
        self.handle()
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.domain.statistics(visit);
    }
}

impl<K: NoUninit + Hash + Eq, S: BuildHasher> SetHandle<K> for PlainHashMapHandle<'_, K, (), S> {
    #[inline]
    fn contains(&mut self, key: &K) -> bool {
        self.contains_key(key)
    }

    #[inline]
    fn insert(&mut self, key: K) -> bool {
        self.insert_new(key, ()).is_none()
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        Self::remove(self, key).is_some()
    }
}

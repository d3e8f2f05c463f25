//! What a thread does with a map of plain data.

use core::fmt;
use core::hash::{BuildHasher, Hash};

use bytemuck::NoUninit;

use super::{PlainHashMap, PlainIter, RandomState};
use crate::reclaim::{Guard, Handle};
use crate::{ConcurrentMap, ConcurrentSet, MapHandle, SetHandle};

/// A thread's access to a [`PlainHashMap`]: an operation costs some nanoseconds less than by the
/// map itself. It stays with its thread.
pub struct PlainHashMapHandle<'a, K: NoUninit, V: NoUninit, S = RandomState> {
    map: &'a PlainHashMap<K, V, S>,
    handle: Handle<'a>,
}

impl<K: NoUninit, V: NoUninit, S> PlainHashMap<K, V, S> {
    /// The calling thread's access.
    #[inline]
    pub fn handle(&self) -> PlainHashMapHandle<'_, K, V, S> {
        PlainHashMapHandle { map: self, handle: self.domain.register() }
    }
}

impl<K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher> PlainHashMapHandle<'_, K, V, S> {
    /// Does something with the map, the key's hash, and a section.
    #[inline]
    fn with<R>(&self, key: &K, f: impl FnOnce(&PlainHashMap<K, V, S>, u64, &Guard) -> R) -> R {
        f(self.map, self.map.hasher.hash_one(key), &self.handle.pin())
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        self.with(key, |map, hash, guard| map.find(hash, key, guard))
    }

    /// Whether the key is there.
    #[inline]
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Gives a key a value. Returns the one that it had.
    #[inline]
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        self.with(&key, |map, hash, guard| map.put(hash, &(key, value), false, guard))
    }

    /// Gives a key a value if it has none. Returns the existing value if there is one.
    #[inline]
    pub fn insert_new(&self, key: K, value: V) -> Option<V> {
        self.with(&key, |map, hash, guard| {
            let there = map.find(hash, &key, guard);
            there.or_else(|| map.put(hash, &(key, value), true, guard))
        })
    }

    /// The value of a key; if it has none, one that is made now: in vain if another thread is
    /// faster.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        self.get(&key).unwrap_or_else(|| {
            let value = make();
            self.insert_new(key, value).unwrap_or(value)
        })
    }

    /// Takes a key out. Returns its value.
    #[inline]
    pub fn remove(&self, key: &K) -> Option<V> {
        self.with(key, |map, hash, guard| {
            map.find(hash, key, guard)?;
            map.take(hash, key, None, guard)
        })
    }

    /// Takes a key out if its value is as it is to be. Returns the value.
    pub fn remove_if(&self, key: &K, mut is: impl FnMut(&V) -> bool) -> Option<V> {
        loop {
            let value = self.get(key).filter(&mut is)?;
            let taken = self.with(key, |map, hash, guard| map.take(hash, key, Some(&value), guard));
            if taken.is_some() {
                return taken;
            }
        }
    }

    /// Atomically replaces a key's value by one computed from it. Returns the new value, or none if
    /// the key is missing. The function is called again if another thread is faster.
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

    /// The same, and a key that is not there gets a value.
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

    /// Gives a key another value if it has this one.
    ///
    /// # Errors
    ///
    /// Returns the new value; none if the key is not there.
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

    /// Takes out every key of which the function says no. Keys that come meanwhile may stay without
    /// having been shown.
    pub fn retain(&self, mut stays: impl FnMut(&K, &V) -> bool) {
        for (key, value) in self {
            let mut there = Some(value);
            while let Some(value) = there.filter(|value| !stays(&key, value)) {
                let old = Some(&value);
                let taken = self.with(&key, |map, hash, guard| map.take(hash, &key, old, guard));
                // It has another value now, which is to be shown, too.
                there = if taken.is_some() { None } else { self.get(&key) };
            }
        }
    }

    /// Takes all keys out that are there now.
    pub fn clear(&self) {
        self.retain(|_, _| false);
    }
}

impl<K: NoUninit, V: NoUninit, S> PlainHashMapHandle<'_, K, V, S> {
    /// The keys and values, in no order. A key that is there all the time comes once; one that
    /// comes or goes meanwhile comes once or not at all.
    pub fn iter(&self) -> PlainIter<'_, K, V> {
        PlainIter::new(&self.map.tables, self.handle.pin())
    }

    /// Counts the keys, which takes a nanosecond or two for each. If others write meanwhile, the
    /// result is approximate.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is no key.
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

/// Each by a handle of its own, as [`PlainHashMapHandle`] has them.
impl<K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher> PlainHashMap<K, V, S> {
    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        self.handle().get(key)
    }

    /// Whether the key is there.
    #[inline]
    pub fn contains_key(&self, key: &K) -> bool {
        self.handle().contains_key(key)
    }

    /// Gives a key a value. Returns the one that it had.
    #[inline]
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        self.handle().insert(key, value)
    }

    /// Gives a key a value if it has none. Returns the existing value if there is one.
    #[inline]
    pub fn insert_new(&self, key: K, value: V) -> Option<V> {
        self.handle().insert_new(key, value)
    }

    /// The value of a key; if it has none, one that is made now: in vain if another thread is
    /// faster.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        self.handle().get_or_insert_with(key, make)
    }

    /// Takes a key out. Returns its value.
    #[inline]
    pub fn remove(&self, key: &K) -> Option<V> {
        self.handle().remove(key)
    }

    /// Takes a key out if its value is as it is to be. Returns the value.
    pub fn remove_if(&self, key: &K, is: impl FnMut(&V) -> bool) -> Option<V> {
        self.handle().remove_if(key, is)
    }

    /// Replaces a key's value by one that `f` makes of it: see [`PlainHashMapHandle::update`].
    pub fn update(&self, key: &K, f: impl FnMut(V) -> V) -> Option<V> {
        self.handle().update(key, f)
    }

    /// The same, and a key that is not there gets a value.
    pub fn update_or_insert(&self, key: K, f: impl FnMut(Option<V>) -> V) -> V {
        self.handle().update_or_insert(key, f)
    }

    /// Gives a key another value if it has this one.
    ///
    /// # Errors
    ///
    /// The value that it has instead; none if the key is not there.
    pub fn compare_exchange(&self, key: &K, old: V, new: V) -> Result<V, Option<V>>
    where
        V: PartialEq,
    {
        self.handle().compare_exchange(key, old, new)
    }

    /// Takes out every key of which the function says no: see [`PlainHashMapHandle::retain`].
    pub fn retain(&self, stays: impl FnMut(&K, &V) -> bool) {
        self.handle().retain(stays);
    }

    /// Takes all keys out that are there now.
    pub fn clear(&self) {
        self.handle().clear();
    }

    /// How many keys there are: see [`PlainHashMapHandle::len`].
    pub fn len(&self) -> usize {
        self.handle().len()
    }

    /// Whether there is no key.
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

/// A map that others use, too, can be extended.
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

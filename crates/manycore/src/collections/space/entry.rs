//! A key of a map, whether or not it is there, with the operation on it still to be chosen.

use super::{Access, Map};
use crate::collections::versioned::{Datum, Seek};
use crate::session::Sessions;

/// A key; the next call decides about its entry. To other threads it is one step, whatever they do
/// between the two calls. See [`Map::entry`] and [`Access::entry`].
#[must_use = "an entry does nothing before it is told what to insert"]
pub struct Entry<T: Upsert> {
    map: T,
    key: T::Key,
}

/// An entry whose value is computed from its present one: see [`Entry::and_modify`].
#[must_use = "an entry does nothing before it is told what to insert"]
pub struct Modified<T: Upsert, F> {
    entry: Entry<T>,
    modify: F,
}

/// The operations that an entry needs from a map, or from a map and a thread's handle.
pub trait Upsert: Sized {
    /// The map's keys.
    type Key;
    /// The map's values.
    type Value;

    /// See [`Access::get_or_insert_with`].
    fn get_or_insert_with(self, key: Self::Key, make: impl FnOnce() -> Self::Value) -> Self::Value
    where
        Self::Value: Clone;

    /// See [`Access::update_or_insert`].
    fn update_or_insert(self, key: Self::Key, f: impl FnMut(Option<&Self::Value>) -> Self::Value);
}

macro_rules! upsert {
    (for $type:ty) => {
        impl<K: Datum, V: Datum, P: Seek<K, K>, M: Sessions> Upsert for $type {
            type Key = K;
            type Value = V;

            fn get_or_insert_with(self, key: K, make: impl FnOnce() -> V) -> V
            where
                V: Clone,
            {
                (*self).get_or_insert_with(key, make)
            }

            fn update_or_insert(self, key: K, f: impl FnMut(Option<&V>) -> V) {
                (*self).update_or_insert(key, f);
            }
        }
    };
}

upsert!(for &Map<K, V, P, M>);
upsert!(for &mut Access<'_, '_, K, V, P, M>);

opaque! {
    [T: Upsert] Entry<T>, "Entry";
    [T: Upsert, F] Modified<T, F>, "Modified";
}

impl<T: Upsert> Entry<T> {
    pub(super) fn new(map: T, key: T::Key) -> Self {
        Self { map, key }
    }

    /// If the key has a value, it gets another, made of that. The function is called again if
    /// another thread is faster.
    pub fn and_modify<F: FnMut(&T::Value) -> T::Value>(self, modify: F) -> Modified<T, F> {
        Modified { entry: self, modify }
    }

    /// A clone of the key's value; the key gets this value if it had none.
    pub fn or_insert(self, value: T::Value) -> T::Value
    where
        T::Value: Clone,
    {
        self.or_insert_with(|| value)
    }

    /// A clone of the key's value. If the key had none, a new value is made; it is dropped if
    /// another thread inserts first.
    pub fn or_insert_with(self, make: impl FnOnce() -> T::Value) -> T::Value
    where
        T::Value: Clone,
    {
        self.map.get_or_insert_with(self.key, make)
    }

    /// The same with the type's usual value.
    pub fn or_default(self) -> T::Value
    where
        T::Value: Clone + Default,
    {
        self.or_insert_with(T::Value::default)
    }
}

impl<T: Upsert, F: FnMut(&T::Value) -> T::Value> Modified<T, F> {
    /// If the key had no value, it gets this one.
    pub fn or_insert(self, value: T::Value)
    where
        T::Value: Clone,
    {
        self.or_insert_with(|| value.clone());
    }

    /// If the key had no value, it gets one that is made now. The function is called again if
    /// another thread is faster.
    pub fn or_insert_with(self, mut make: impl FnMut() -> T::Value) {
        let Self { entry, mut modify } = self;
        entry.map.update_or_insert(entry.key, |old| match old {
            Some(old) => modify(old),
            None => make(),
        });
    }
}

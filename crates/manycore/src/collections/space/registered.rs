//! A map and the calling thread's handle, for the traits that all maps have.

use super::handle::Handle;
use super::map::Map;
use crate::collections::versioned::{Datum, Seek, Structure};
use crate::session::Sessions;
use crate::{ConcurrentMap, ConcurrentSet, MapHandle, SetHandle};

/// A thread's access to one map: see [`ConcurrentMap`].
pub struct Registered<'a, K: Datum, V: Datum, P: Structure, M: Sessions + 'static> {
    map: &'a Map<K, V, P, M>,
    me: Handle<'a, M>,
}

impl<'a, K: Datum, V: Datum, P: Structure, M: Sessions> Registered<'a, K, V, P, M> {
    pub(super) fn new(map: &'a Map<K, V, P, M>) -> Self {
        Self { map, me: map.space().handle() }
    }
}

impl<K, V, P, M> ConcurrentMap<K, V> for Map<K, V, P, M>
where
    K: Datum,
    V: Datum + Clone,
    P: Seek<K, K>,
    M: Sessions,
{
    type Handle<'a>
        = Registered<'a, K, V, P, M>
    where
        Self: 'a;

    fn handle(&self) -> Self::Handle<'_> {
        Registered::new(self)
    }
}

impl<K, P, M> ConcurrentSet<K> for Map<K, (), P, M>
where
    K: Datum,
    P: Seek<K, K>,
    M: Sessions,
{
    type Handle<'a>
        = Registered<'a, K, (), P, M>
    where
        Self: 'a;

    fn handle(&self) -> Self::Handle<'_> {
        Registered::new(self)
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.space().domain().statistics(visit);
    }
}

impl<K, V, P, M> MapHandle<K, V> for Registered<'_, K, V, P, M>
where
    K: Datum,
    V: Datum + Clone,
    P: Seek<K, K>,
    M: Sessions,
{
    #[inline]
    fn get(&mut self, key: &K) -> Option<V> {
        self.map.by(&mut self.me).get(key)
    }

    #[inline]
    fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.map.by(&mut self.me).insert(key, value)
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<V> {
        self.map.by(&mut self.me).remove(key)
    }
}

impl<K, P, M> SetHandle<K> for Registered<'_, K, (), P, M>
where
    K: Datum,
    P: Seek<K, K>,
    M: Sessions,
{
    #[inline]
    fn contains(&mut self, key: &K) -> bool {
        self.map.by(&mut self.me).contains_key(key)
    }

    #[inline]
    fn insert(&mut self, key: K) -> bool {
        self.map.by(&mut self.me).insert_new(key, ())
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        self.map.by(&mut self.me).delete(key)
    }
}

opaque! {
    [K: Datum, V: Datum, P: Structure, M: Sessions] Registered<'_, K, V, P, M>, "Registered";
}

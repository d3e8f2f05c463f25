//! Sets and maps that many threads use at once.
//!
//! Mechanisms like RCU or MV-RLU know each thread that takes part. So a thread uses a collection
//! through a handle of its own, which is cheap to use and not to be shared; where a mechanism needs
//! none, the handle is a reference.

/// A set that many threads use at once. Every operation takes effect at one instant between its
/// call and its return (linearizable).
pub trait ConcurrentSet<K>: Sync {
    /// A thread's access to the set.
    type Handle<'a>: SetHandle<K>
    where
        Self: 'a;

    /// Registers the calling thread with the set. May allocate; keep the handle for as long as the
    /// thread uses the set.
    fn handle(&self) -> Self::Handle<'_>;

    /// Visits the mechanism's counts so far: a name and a number each, such as aborted attempts.
    fn statistics(&self, _visit: &mut dyn FnMut(&'static str, u64)) {}
}

/// One thread's access to a [`ConcurrentSet`].
pub trait SetHandle<K> {
    /// Whether the key is in the set.
    fn contains(&mut self, key: &K) -> bool;

    /// Adds the key; returns whether it was absent.
    fn insert(&mut self, key: K) -> bool;

    /// Removes the key; returns whether it was there.
    fn remove(&mut self, key: &K) -> bool;
}

/// A map that many threads use at once. Every operation takes effect at one instant between its
/// call and its return (linearizable).
pub trait ConcurrentMap<K, V>: Sync {
    /// A thread's access to the map.
    type Handle<'a>: MapHandle<K, V>
    where
        Self: 'a;

    /// Registers the calling thread with the map. May allocate; keep the handle for as long as the
    /// thread uses the map.
    fn handle(&self) -> Self::Handle<'_>;
}

/// One thread's access to a [`ConcurrentMap`].
pub trait MapHandle<K, V> {
    /// A copy of the key's value.
    fn get(&mut self, key: &K) -> Option<V>;

    /// Gives the key a value; returns the one it had.
    fn insert(&mut self, key: K, value: V) -> Option<V>;

    /// Removes the key; returns its value.
    fn remove(&mut self, key: &K) -> Option<V>;
}

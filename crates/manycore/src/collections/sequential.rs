//! Maps that one thread uses at a time.

/// A map without any protection, for [`Locked`](super::Locked) and [`Combined`](super::Combined),
/// which protect it.
///
/// Its nodes are in the facade's cells, so that a simulated machine sees each access.
pub trait SequentialMap<K, V> {
    /// A copy of the key's value.
    fn get(&self, key: &K) -> Option<V>;

    /// Gives the key a value; returns the key's old value.
    fn insert(&mut self, key: K, value: V) -> Option<V>;

    /// Takes the key out; returns its value.
    fn remove(&mut self, key: &K) -> Option<V>;
}

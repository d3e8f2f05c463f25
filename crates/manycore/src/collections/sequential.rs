//! Maps that one thread uses at a time.

/// A map without any protection: what [`Locked`](super::Locked) and [`Combined`](super::Combined)
/// protect.
///
/// Its nodes are in the facade's cells, so that a simulated machine sees each visit.
pub trait SequentialMap<K, V> {
    /// A copy of the key's value.
    fn get(&self, key: &K) -> Option<V>;

    /// Gives the key a value; returns the one it had.
    fn insert(&mut self, key: K, value: V) -> Option<V>;

    /// Takes the key out; returns its value.
    fn remove(&mut self, key: &K) -> Option<V>;
}

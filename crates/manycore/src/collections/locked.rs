//! `lock:NAME`: a structure under a lock, one operation at a time.
//!
//! # Idea
//!
//! The thread that holds the lock owns the structure. A look-up takes the lock, too: no thread may
//! change what another reads.
//!
//! # Source
//!
//! Folklore; the base line of everything else.
//!
//! # Memory order
//!
//! The lock's order: everything before a release happens before the next acquisition returns.
//!
//! # Cost
//!
//! Each operation costs an acquisition, and the transfer of every line that the last owner has
//! changed. Operations do not run in parallel, but no work is deferred either: there is no garbage.
//!
//! # When not to use it
//!
//! Where threads contend often. Separate locks for parts, as in
//! [`LockedTable`](super::hash::LockedTable), keep them apart.

use super::SequentialMap;
use super::set_by_map::set_by_map;
use crate::lock::Guarded;
use crate::{ConcurrentMap, MapHandle, RawLock};

/// A structure under a lock.
pub struct Locked<S, L>(Guarded<S, L>);

impl<S, L: RawLock> Locked<S, L> {
    /// Creates one with this structure.
    pub fn new(structure: S) -> Self {
        Self(Guarded::new(structure))
    }

    pub(super) fn read<R>(&self, section: impl FnOnce(&S) -> R) -> R {
        self.0.with(|structure| section(structure))
    }

    pub(super) fn write<R>(&self, section: impl FnOnce(&mut S) -> R) -> R {
        self.0.with(section)
    }
}

impl<S: Default, L: RawLock> Default for Locked<S, L> {
    fn default() -> Self {
        Self::new(S::default())
    }
}

opaque! { [S, L] Locked<S, L>, "Locked"; }

impl<K, V, S: SequentialMap<K, V> + Send, L: RawLock> ConcurrentMap<K, V> for Locked<S, L> {
    type Handle<'a>
        = &'a Self
    where
        Self: 'a;

    fn handle(&self) -> &Self {
        self
    }
}

impl<K, V, S: SequentialMap<K, V>, L: RawLock> MapHandle<K, V> for &Locked<S, L> {
    fn get(&mut self, key: &K) -> Option<V> {
        self.read(|map| map.get(key))
    }

    fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.write(|map| map.insert(key, value))
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        self.write(|map| map.remove(key))
    }
}

set_by_map!(impl[K, S: SequentialMap<K, ()> + Send, L: RawLock] Locked<S, L>);

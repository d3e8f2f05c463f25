//! `flat-combining`: a structure whose owner runs the operations of all threads.
//!
//! # Idea
//!
//! Operations are sections of a [`FlatCombining`], whose page describes how sections run.
//!
//! # Source
//!
//! D. Hendler et al., SPAA 2010. There the combiner also sorts and merges the operations that it
//! finds, if the structure allows it; here each operation runs by itself.
//!
//! # Memory order
//!
//! The same as for `FlatCombining`: operations run one after the other, and each sees the effects
//! of all earlier ones.
//!
//! # Cost
//!
//! An operation takes two line transfers if threads contend, whatever it accesses: the lines of the
//! structure stay with the combiner.
//!
//! # When not to use it
//!
//! For operations that take long, since they all run on one CPU. And for structures that can be
//! divided: with a lock for each part, threads run in parallel.

use super::SequentialMap;
use super::set_by_map::set_by_map;
use crate::delegate::FlatCombining;
use crate::{ConcurrentMap, MapHandle};

/// A structure whose owner runs the operations of all threads.
#[derive(Debug, Default)]
pub struct Combined<S> {
    structure: FlatCombining<S>,
}

impl<S> Combined<S> {
    /// Creates one with this structure.
    pub fn new(structure: S) -> Self {
        Self { structure: FlatCombining::new(structure) }
    }
}

impl<K, V, S> ConcurrentMap<K, V> for Combined<S>
where
    K: Send + Sync,
    V: Send,
    S: SequentialMap<K, V> + Send,
{
    type Handle<'a>
        = &'a Self
    where
        Self: 'a;

    fn handle(&self) -> &Self {
        self
    }
}

impl<K, V, S> MapHandle<K, V> for &Combined<S>
where
    K: Send + Sync,
    V: Send,
    S: SequentialMap<K, V> + Send,
{
    fn get(&mut self, key: &K) -> Option<V> {
        self.structure.with(|map| map.get(key))
    }

    fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.structure.with(|map| map.insert(key, value))
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        self.structure.with(|map| map.remove(key))
    }
}

set_by_map!(impl[K: Send + Sync, S: SequentialMap<K, ()> + Send] Combined<S>);

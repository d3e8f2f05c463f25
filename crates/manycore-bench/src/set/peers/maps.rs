//! Sets of well-known crates, and the standard library's with locks.

use std::collections::{BTreeSet, HashSet};
use std::hash::BuildHasher;

use manycore_traits::{ConcurrentSet, SetHandle};

use super::hasher::Multiplying;
use crate::set::contenders::AnySet;
use crate::set::task::Task;

/// Implements the benchmark's interface for foreign sets: each by its type, and the calls of a
/// reference to it.
macro_rules! adapters {
    ($($name:ident($set:ty): $contains:expr, $insert:expr, $remove:expr;)*) => {$(
        struct $name($set);

        impl ConcurrentSet<u64> for $name {
            type Handle<'a> = &'a Self;

            fn handle(&self) -> &Self {
                self
            }
        }

        impl SetHandle<u64> for &$name {
            #[inline]
            fn contains(&mut self, key: &u64) -> bool {
                let contains: fn(&$set, &u64) -> bool = $contains;
                contains(&self.0, key)
            }

            #[inline]
            fn insert(&mut self, key: u64) -> bool {
                let insert: fn(&$set, u64) -> bool = $insert;
                insert(&self.0, key)
            }

            #[inline]
            fn remove(&mut self, key: &u64) -> bool {
                let remove: fn(&$set, &u64) -> bool = $remove;
                remove(&self.0, key)
            }
        }
    )*};
}

adapters! {
    // Its set's `insert` would replace an existing key, which takes an allocation.
    Papaya(papaya::HashMap<u64, (), Multiplying>):
        |set, key| set.pin().contains_key(key),
        |set, key| set.pin().try_insert_with(key, || ()).is_ok(),
        |set, key| set.pin().remove(key).is_some();
    Scc(scc::HashSet<u64, Multiplying>):
        |set, key| set.contains_sync(key),
        |set, key| set.insert_sync(key).is_ok(),
        |set, key| set.remove_sync(key).is_some();
    SccIndex(scc::HashIndex<u64, (), Multiplying>):
        |set, key| set.contains(key),
        |set, key| set.insert_sync(key, ()).is_ok(),
        |set, key| set.remove_sync(key);
    SccTree(scc::TreeIndex<u64, ()>):
        |set, key| set.contains(key),
        |set, key| set.insert_sync(key, ()).is_ok(),
        |set, key| set.remove_sync(key);
    Dash(dashmap::DashSet<u64, Multiplying>):
        |set, key| set.contains(key),
        |set, key| set.insert(key),
        |set, key| set.remove(key).is_some();
    MutexHash(parking_lot::Mutex<HashSet<u64, Multiplying>>):
        |set, key| set.lock().contains(key),
        |set, key| set.lock().insert(key),
        |set, key| set.lock().remove(key);
    MutexTree(parking_lot::Mutex<BTreeSet<u64>>):
        |set, key| set.lock().contains(key),
        |set, key| set.lock().insert(key),
        |set, key| set.lock().remove(key);
    RwHash(parking_lot::RwLock<HashSet<u64, Multiplying>>):
        |set, key| set.read().contains(key),
        |set, key| set.write().insert(key),
        |set, key| set.write().remove(key);
    RwTree(parking_lot::RwLock<BTreeSet<u64>>):
        |set, key| set.read().contains(key),
        |set, key| set.write().insert(key),
        |set, key| set.write().remove(key);
}

fn keys(task: &Task) -> usize {
    task.keys.initial as usize
}

fn hashing() -> Multiplying {
    Multiplying::default()
}

pub(super) fn papaya(task: &Task) -> Box<dyn AnySet> {
    Box::new(Papaya(papaya::HashMap::with_capacity_and_hasher(keys(task), hashing())))
}

pub(super) fn scc(task: &Task) -> Box<dyn AnySet> {
    Box::new(Scc(scc::HashSet::with_capacity_and_hasher(keys(task), hashing())))
}

pub(super) fn scc_index(task: &Task) -> Box<dyn AnySet> {
    Box::new(SccIndex(scc::HashIndex::with_capacity_and_hasher(keys(task), hashing())))
}

pub(super) fn scc_tree(_task: &Task) -> Box<dyn AnySet> {
    Box::new(SccTree(scc::TreeIndex::new()))
}

pub(super) fn dashmap(task: &Task) -> Box<dyn AnySet> {
    Box::new(Dash(dashmap::DashSet::with_capacity_and_hasher(keys(task), hashing())))
}

/// A hash table of the standard library with room for the task's keys.
fn table<S: BuildHasher + Default>(task: &Task) -> HashSet<u64, S> {
    HashSet::with_capacity_and_hasher(keys(task), S::default())
}

pub(super) fn under_mutex(task: &Task) -> Box<dyn AnySet> {
    match task.structure.as_str() {
        "hash" => Box::new(MutexHash(parking_lot::Mutex::new(table(task)))),
        _ => Box::new(MutexTree(parking_lot::Mutex::default())),
    }
}

pub(super) fn under_rwlock(task: &Task) -> Box<dyn AnySet> {
    match task.structure.as_str() {
        "hash" => Box::new(RwHash(parking_lot::RwLock::new(table(task)))),
        _ => Box::new(RwTree(parking_lot::RwLock::default())),
    }
}

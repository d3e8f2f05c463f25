//! The standard library's tree under a lock, and several of them.

use std::collections::BTreeMap;

use manycore::sync::CachePadded;
use parking_lot::RwLock;

use crate::index::any_index::{AnyIndex, IndexHandle};
use crate::index::data::{Key, Onward, Scan, Seen, Value, asked, next, value};

/// A tree under a lock.
type Tree<K, V> = RwLock<BTreeMap<K, V>>;

/// Trees among which the keys are divided, equally large ranges each; their number is a power of
/// two.
pub(super) struct Locked<K, V, const SHARDS: usize>(Box<[CachePadded<Tree<K, V>>]>);

impl<K: Key, V: Value, const SHARDS: usize> Default for Locked<K, V, SHARDS> {
    fn default() -> Self {
        Self((0..SHARDS).map(|_| CachePadded::default()).collect())
    }
}

impl<K: Key, V: Value, const SHARDS: usize> Locked<K, V, SHARDS> {
    /// The index of the tree that has a key: all keys of a tree are before those of the next.
    #[inline]
    fn number(key: u64) -> usize {
        const { assert!(SHARDS.is_power_of_two()) };
        ((u128::from(key) * SHARDS as u128) >> 64) as usize
    }
}

impl<K: Key, V: Value, const SHARDS: usize> AnyIndex for Locked<K, V, SHARDS> {
    fn handle(&self) -> Box<dyn IndexHandle + '_> {
        Box::new(self)
    }
}

impl<K: Key, V: Value, const SHARDS: usize> IndexHandle for &Locked<K, V, SHARDS> {
    #[inline]
    fn get(&mut self, key: u64) -> Seen {
        let spelled = K::spell(key);
        let tree = self.0[Locked::<K, V, SHARDS>::number(key)].read();
        let value = tree.get(asked::<K>(&spelled));
        value.map_or(Seen::Nothing, |value| Seen::at::<K, V>(asked::<K>(&spelled), value))
    }

    #[inline]
    fn put(&mut self, key: u64, count: u32) {
        let entry = (K::new(key), value::<K, V>(key, count));
        self.0[Locked::<K, V, SHARDS>::number(key)].write().insert(entry.0, entry.1);
    }

    #[inline]
    fn modify(&mut self, key: u64) -> bool {
        let spelled = K::spell(key);
        let mut tree = self.0[Locked::<K, V, SHARDS>::number(key)].write();
        let value = tree.get_mut(asked::<K>(&spelled));
        value.map(|value| *value = next(value)).is_some()
    }

    /// Scans one tree after the other, so a scan does not see a single moment.
    #[inline]
    fn scan(&mut self, from: u64, most: u32) -> Scan {
        let spelled = K::spell(from);
        let mut scan = Scan::new(most);
        for tree in &self.0[Locked::<K, V, SHARDS>::number(from)..] {
            let tree = tree.read();
            let entries = tree.range(Onward(asked::<K>(&spelled)));
            scan.take_all::<K, V>(entries.map(|(key, value)| (key.borrow(), value)));
            if !scan.is_hungry() {
                break;
            }
        }
        scan
    }
}

//! Ordered maps of well-known crates.

use std::ops::Bound;

use crossbeam_skiplist::SkipMap;
use ferntree::OptimisticRead;
use scc::{Guard, TreeIndex};

use crate::index::any_index::{AnyIndex, IndexHandle};
use crate::index::data::{Key, KeyKind, Onward, Scan, Seen, Value, asked, next, value};
use crate::index::task::Task;

/// scc's tree. It has no operation that both reads and writes.
pub(super) struct SccTree<K, V>(TreeIndex<K, V>);

impl<K: Key, V: Value> Default for SccTree<K, V> {
    fn default() -> Self {
        Self(TreeIndex::new())
    }
}

impl<K: Key, V: Value> AnyIndex for SccTree<K, V> {
    fn handle(&self) -> Box<dyn IndexHandle + '_> {
        Box::new(self)
    }
}

impl<K: Key, V: Value> IndexHandle for &SccTree<K, V> {
    #[inline]
    fn get(&mut self, key: u64) -> Seen {
        let spelled = K::spell(key);
        let asked = asked::<K>(&spelled);
        let see = |_: &K, value: &V| Seen::at::<K, V>(asked, value);
        self.0.peek_with(asked, see).unwrap_or(Seen::Nothing)
    }

    #[inline]
    fn put(&mut self, key: u64, count: u32) {
        self.0.upsert_sync(K::new(key), value::<K, V>(key, count));
    }

    #[inline]
    fn modify(&mut self, key: u64) -> bool {
        let spelled = K::spell(key);
        let asked = asked::<K>(&spelled);
        let value = self.0.peek_with(asked, |_, value| next(value));
        value.map(|value| self.0.upsert_sync(K::new(key), value)).is_some()
    }

    #[inline]
    fn scan(&mut self, from: u64, most: u32) -> Scan {
        let (spelled, guard) = (K::spell(from), Guard::new());
        let mut scan = Scan::new(most);
        let entries = self.0.range(Onward(asked::<K>(&spelled)), &guard);
        scan.take_all::<K, V>(entries.map(|(key, value)| (key.borrow(), value)));
        scan
    }
}

/// crossbeam's skip list. It has no operation that both reads and writes.
pub(super) struct Skiplist<K, V>(SkipMap<K, V>);

impl<K: Key, V: Value> Default for Skiplist<K, V> {
    fn default() -> Self {
        Self(SkipMap::new())
    }
}

impl<K: Key, V: Value> AnyIndex for Skiplist<K, V> {
    fn handle(&self) -> Box<dyn IndexHandle + '_> {
        Box::new(self)
    }
}

impl<K: Key, V: Value> IndexHandle for &Skiplist<K, V> {
    #[inline]
    fn get(&mut self, key: u64) -> Seen {
        let spelled = K::spell(key);
        let asked = asked::<K>(&spelled);
        let entry = self.0.get(asked);
        entry.map_or(Seen::Nothing, |entry| Seen::at::<K, V>(asked, entry.value()))
    }

    #[inline]
    fn put(&mut self, key: u64, count: u32) {
        self.0.insert(K::new(key), value::<K, V>(key, count));
    }

    #[inline]
    fn modify(&mut self, key: u64) -> bool {
        let spelled = K::spell(key);
        let asked = asked::<K>(&spelled);
        let value = self.0.get(asked).map(|entry| next(entry.value()));
        value.map(|value| self.0.insert(K::new(key), value)).is_some()
    }

    #[inline]
    fn scan(&mut self, from: u64, most: u32) -> Scan {
        let spelled = K::spell(from);
        let mut scan = Scan::new(most);
        for entry in self.0.range(Onward(asked::<K>(&spelled))) {
            if !scan.take::<K, V>(entry.key().borrow(), entry.value()) {
                break;
            }
        }
        scan
    }
}

/// ferntree's, whose values are words.
struct Ferntree<K: Key + OptimisticRead>(ferntree::Tree<K, u64>);

pub(super) fn ferntree(task: &Task) -> Box<dyn AnyIndex> {
    match task.records.key {
        KeyKind::U64 => Box::new(Ferntree::<u64>(ferntree::Tree::new())),
        KeyKind::String => Box::new(Ferntree::<String>(ferntree::Tree::new())),
    }
}

impl<K: Key + OptimisticRead> AnyIndex for Ferntree<K> {
    fn handle(&self) -> Box<dyn IndexHandle + '_> {
        Box::new(self)
    }
}

impl<K: Key + OptimisticRead> IndexHandle for &Ferntree<K> {
    #[inline]
    fn get(&mut self, key: u64) -> Seen {
        let spelled = K::spell(key);
        let asked = asked::<K>(&spelled);
        let value = self.0.get_optimistic(asked);
        value.map_or(Seen::Nothing, |value| Seen::at::<K, u64>(asked, &value))
    }

    #[inline]
    fn put(&mut self, key: u64, count: u32) {
        self.0.insert(K::new(key), value::<K, u64>(key, count));
    }

    /// A cursor that writes has the leaf to itself.
    #[inline]
    fn modify(&mut self, key: u64) -> bool {
        let spelled = K::spell(key);
        let asked = asked::<K>(&spelled);
        let mut cursor = self.0.raw_iter_mut();
        if !cursor.seek_exact(asked) {
            return false;
        }
        cursor.peek().map(|(_, value)| *value = next(value)).is_some()
    }

    #[inline]
    fn scan(&mut self, from: u64, most: u32) -> Scan {
        let spelled = K::spell(from);
        let mut scan = Scan::new(most);
        let mut entries =
            self.0.range::<K::Asked>(Bound::Included(asked::<K>(&spelled)), Bound::Unbounded);
        while let Some((key, value)) = entries.next() {
            if !scan.take::<K, u64>(key.borrow(), value) {
                break;
            }
        }
        scan
    }
}

/// congee's, of numbers.
#[derive(Default)]
pub(super) struct Congee(congee::Congee<usize, usize>);

/// More entries than a scan has.
const SCAN_MAX: usize = 128;

impl AnyIndex for Congee {
    fn handle(&self) -> Box<dyn IndexHandle + '_> {
        Box::new(self)
    }
}

impl IndexHandle for &Congee {
    #[inline]
    fn get(&mut self, key: u64) -> Seen {
        let value = self.0.get(&(key as usize), &self.0.pin());
        value.map_or(Seen::Nothing, |value| Seen::at::<u64, u64>(&key, &(value as u64)))
    }

    #[inline]
    fn put(&mut self, key: u64, count: u32) {
        let value = value::<u64, u64>(key, count) as usize;
        self.0.insert(key as usize, value, &self.0.pin()).expect("there is memory");
    }

    #[inline]
    fn modify(&mut self, key: u64) -> bool {
        let next = |value| Some(next::<u64>(&(value as u64)) as usize);
        self.0.compute_if_present(&(key as usize), next, &self.0.pin()).is_some()
    }

    /// Its scans end before the last possible key, which belongs to no record.
    #[inline]
    fn scan(&mut self, from: u64, most: u32) -> Scan {
        let mut found = [(0, 0); SCAN_MAX];
        let room = &mut found[..(most as usize).min(SCAN_MAX)];
        let count = self.0.range(&(from as usize), &usize::MAX, room, &self.0.pin());
        let mut scan = Scan::new(most);
        for (key, value) in &found[..count] {
            scan.take::<u64, u64>(&(*key as u64), &(*value as u64));
        }
        scan
    }
}

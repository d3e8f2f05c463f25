//! crossbeam's skip list, as a set.
//!
//! Its `SkipSet` does not tell whether an insertion found the key, and two removals of one key may
//! both return an entry. So each insertion has a value of its own: the entry has that value if the
//! insertion added it. A removal asks the entry whether this call removed it.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_skiplist::SkipMap;
use manycore_traits::{ConcurrentSet, SetHandle};

use crate::set::contenders::AnySet;
use crate::set::task::Task;

#[derive(Default)]
struct Skiplist {
    map: SkipMap<u64, u64>,
    handles: AtomicU64,
}

struct Handle<'a> {
    map: &'a SkipMap<u64, u64>,
    /// The value of the next insertion. No other handle has it.
    next: u64,
}

/// The number of values, and so of insertions, that a handle has. 2^24 handles can have as many.
const INSERTIONS: u64 = 1 << 40;

impl ConcurrentSet<u64> for Skiplist {
    type Handle<'a> = Handle<'a>;

    fn handle(&self) -> Handle<'_> {
        // Relaxed: the numbers have to differ, and need no order.
        let number = self.handles.fetch_add(1, Ordering::Relaxed);
        Handle { map: &self.map, next: number * INSERTIONS }
    }
}

impl SetHandle<u64> for Handle<'_> {
    fn contains(&mut self, key: &u64) -> bool {
        self.map.contains_key(key)
    }

    fn insert(&mut self, key: u64) -> bool {
        self.next += 1;
        *self.map.get_or_insert(key, self.next).value() == self.next
    }

    fn remove(&mut self, key: &u64) -> bool {
        self.map.get(key).is_some_and(|entry| entry.remove())
    }
}

pub(super) fn list(_task: &Task) -> Box<dyn AnySet> {
    Box::new(Skiplist::default())
}

//! crossbeam's skip list, with what a set answers.
//!
//! Its `SkipSet` does not say whether an insertion found the key, and two removals of one key may
//! both return an entry. So each insertion comes with a value of its own, which the entry has if it
//! is the one that went in; and a removal asks the entry whether it was this call that took it out.

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
    /// The value of the next insertion: no other handle has it.
    next: u64,
}

/// How many insertions a handle has values for; 2^24 handles have that number each.
const INSERTIONS: u64 = 1 << 40;

impl ConcurrentSet<u64> for Skiplist {
    type Handle<'a> = Handle<'a>;

    fn handle(&self) -> Handle<'_> {
        // Relaxed: only that each is different counts.
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

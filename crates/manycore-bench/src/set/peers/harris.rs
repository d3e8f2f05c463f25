//! Harris' list on crossbeam-epoch, as its documentation would have one write it. Memory order as
//! in manycore's `harris`.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crossbeam_epoch::{Atomic, Collector, Guard, LocalHandle, Owned, Shared};
use manycore_traits::{ConcurrentSet, SetHandle};

use crate::set::contenders::AnySet;
use crate::set::task::Task;

struct List {
    head: Atomic<Node>,
    collector: Collector,
}

struct Node {
    /// The next node; with a tag of 1, and for good, if this one is taken out.
    next: Atomic<Node>,
    key: u64,
}

/// Where a key is, or would be.
struct Place<'g> {
    link: &'g Atomic<Node>,
    node: Shared<'g, Node>,
    found: bool,
}

impl List {
    fn find<'g>(&'g self, key: u64, guard: &'g Guard) -> Place<'g> {
        'again: loop {
            let mut link = &self.head;
            // Acquire, here and below: partner of the Releases of links.
            let mut first = link.load(Acquire, guard);
            let mut node = first;
            let found = loop {
                // SAFETY: null, or a node that could be reached under the guard.
                let Some(there) = (unsafe { node.as_ref() }) else { break false };
                let next = there.next.load(Acquire, guard);
                if next.tag() == 1 {
                    node = next.with_tag(0);
                } else if there.key < key {
                    (link, first, node) = (&there.next, next, next);
                } else {
                    break there.key == key;
                }
            };
            if first != node && !take_away(link, first, node, guard) {
                continue 'again;
            }
            return Place { link, node, found };
        }
    }

    fn contains(&self, key: u64, guard: &Guard) -> bool {
        // Acquire, both: as in `find`.
        let mut link = self.head.load(Acquire, guard);
        // SAFETY: null, or a node to which a link led under the guard, and so not destroyed before
        // that ends.
        while let Some(node) = unsafe { link.with_tag(0).as_ref() } {
            link = node.next.load(Acquire, guard);
            if node.key >= key {
                return node.key == key && link.tag() == 0;
            }
        }
        false
    }

    fn insert(&self, key: u64, guard: &Guard) -> bool {
        let mut new = Owned::new(Node { next: Atomic::null(), key });
        loop {
            let place = self.find(key, guard);
            if place.found {
                return false;
            }
            // Relaxed: released by the swap below, which is with Release: partner of the Acquires
            // that follow the link.
            new.next.store(place.node, Relaxed);
            match place.link.compare_exchange(place.node, new, Release, Relaxed, guard) {
                Ok(_) => return true,
                Err(failed) => new = failed.new,
            }
        }
    }

    fn remove(&self, key: u64, guard: &Guard) -> bool {
        loop {
            let place = self.find(key, guard);
            if !place.found {
                return false;
            }
            // SAFETY: found, and there as long as the guard.
            let node = unsafe { place.node.deref() };
            // Acquire: passed on in `take_away`. The mark is Relaxed: the link leads where it did.
            let next = node.next.load(Acquire, guard);
            let mark = next.with_tag(1);
            let marked = next.tag() == 0
                && node.next.compare_exchange(next, mark, Relaxed, Relaxed, guard).is_ok();
            if marked {
                if !take_away(place.link, place.node, next, guard) {
                    self.find(key, guard); // takes it away
                }
                return true;
            }
        }
    }
}

/// Leads a link past the nodes from `first` up to `end`, which are marked; says whether it still
/// led there.
fn take_away<'g>(
    link: &Atomic<Node>,
    first: Shared<'g, Node>,
    end: Shared<'g, Node>,
    guard: &'g Guard,
) -> bool {
    // Release: partner of the Acquires that follow the link. Relaxed on failure: all is read anew.
    if link.compare_exchange(first, end, Release, Relaxed, guard).is_err() {
        return false;
    }
    let mut node = first;
    while node != end {
        // SAFETY: a node that could be reached under the guard; the link leads past it, and this
        // thread has made it do so.
        unsafe {
            let next = node.deref().next.load(Relaxed, guard).with_tag(0); // Relaxed: marked, and so what was read before
            guard.defer_destroy(node);
            node = next;
        }
    }
    true
}

impl Drop for List {
    fn drop(&mut self) {
        // Relaxed: nobody else has the list.
        // SAFETY: `&mut self`: nobody else has the list, of which no link leads to nodes that were
        // taken away; the others come from `Owned`.
        unsafe {
            let guard = crossbeam_epoch::unprotected();
            let mut node = self.head.load(Relaxed, guard).with_tag(0);
            while !node.is_null() {
                let next = node.deref().next.load(Relaxed, guard).with_tag(0);
                drop(node.into_owned());
                node = next;
            }
        }
    }
}

struct Handle<'a> {
    list: &'a List,
    thread: LocalHandle,
}

impl ConcurrentSet<u64> for List {
    type Handle<'a> = Handle<'a>;

    fn handle(&self) -> Handle<'_> {
        Handle { list: self, thread: self.collector.register() }
    }
}

impl SetHandle<u64> for Handle<'_> {
    fn contains(&mut self, key: &u64) -> bool {
        self.list.contains(*key, &self.thread.pin())
    }

    fn insert(&mut self, key: u64) -> bool {
        self.list.insert(key, &self.thread.pin())
    }

    fn remove(&mut self, key: &u64) -> bool {
        self.list.remove(*key, &self.thread.pin())
    }
}

pub(super) fn list(_task: &Task) -> Box<dyn AnySet> {
    Box::new(List { head: Atomic::null(), collector: Collector::new() })
}

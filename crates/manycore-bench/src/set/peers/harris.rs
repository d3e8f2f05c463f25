//! Harris' list on crossbeam-epoch, written as the crate's documentation advises. The memory
//! orderings are those of manycore's `harris`.

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
    /// The next node. Once this node is removed, the link has a tag of 1 and does not change any
    /// more.
    next: Atomic<Node>,
    key: u64,
}

/// The link and the node between which a key is or would be.
struct Window<'g> {
    link: &'g Atomic<Node>,
    node: Shared<'g, Node>,
    found: bool,
}

impl List {
    fn find<'g>(&'g self, key: u64, guard: &'g Guard) -> Window<'g> {
        'again: loop {
            let mut link = &self.head;
            // Acquire, here and below: partner of the Releases of links.
            let mut first = link.load(Acquire, guard);
            let mut node = first;
            let found = loop {
                // SAFETY: null, or a node to which a link led under the guard.
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
            return Window { link, node, found };
        }
    }

    fn contains(&self, key: u64, guard: &Guard) -> bool {
        // Acquire, both: as in `find`.
        let mut link = self.head.load(Acquire, guard);
        // SAFETY: null, or a node to which a link led under the guard, so that it is not destroyed
        // before the guard ends.
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
            let window = self.find(key, guard);
            if window.found {
                return false;
            }
            // Relaxed: the swap below releases it. Release: partner of the Acquires that follow the
            // link.
            new.next.store(window.node, Relaxed);
            match window.link.compare_exchange(window.node, new, Release, Relaxed, guard) {
                Ok(_) => return true,
                Err(failed) => new = failed.new,
            }
        }
    }

    fn remove(&self, key: u64, guard: &Guard) -> bool {
        loop {
            let window = self.find(key, guard);
            if !window.found {
                return false;
            }
            // SAFETY: the key was found, and the node stays until the guard ends.
            let node = unsafe { window.node.deref() };
            // Acquire: passed on in `take_away`. The mark is Relaxed: the link still leads to the
            // same node.
            let next = node.next.load(Acquire, guard);
            let mark = next.with_tag(1);
            let marked = next.tag() == 0
                && node.next.compare_exchange(next, mark, Relaxed, Relaxed, guard).is_ok();
            if marked {
                if !take_away(window.link, window.node, next, guard) {
                    self.find(key, guard); // takes it away
                }
                return true;
            }
        }
    }
}

/// Makes a link lead past the marked nodes from `first` up to `end`. Returns whether the link still
/// led to `first`.
fn take_away<'g>(
    link: &Atomic<Node>,
    first: Shared<'g, Node>,
    end: Shared<'g, Node>,
    guard: &'g Guard,
) -> bool {
    // Release: partner of the Acquires that follow the link. Relaxed on failure: the caller reads
    // everything anew.
    if link.compare_exchange(first, end, Release, Relaxed, guard).is_err() {
        return false;
    }
    let mut node = first;
    while node != end {
        // SAFETY: a link led to the node under the guard; this thread has made the link lead past
        // it.
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
        // Relaxed: no other thread has the list. SAFETY: `&mut self`: no other thread has the list.
        // No link leads to nodes that were removed from it; the others come from `Owned`.
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

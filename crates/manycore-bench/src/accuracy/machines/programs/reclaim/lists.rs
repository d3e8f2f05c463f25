//! Harris' list in the form that M. Michael gave it, for schemes that protect nodes one by one; a
//! table of such lists, by the remainder of the key.

use std::ptr::null_mut;

use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use manycore_simulated::sync::cell::UnsafeCell;

use super::scheme::{Access, MARK, Node, Pace, Retired, SLOTS, Scheme, unmarked};

fn marked(link: *mut Node) -> *mut Node {
    link.map_addr(|address| address | MARK)
}

fn is_marked(link: *mut Node) -> bool {
    link.addr() & MARK != 0
}

/// What one thread has.
struct Own {
    is_taken: AtomicBool,
    /// Of the thread that has taken it.
    private: std::cell::UnsafeCell<Counts>,
}

#[derive(Default)]
struct Counts {
    allocated: u64,
    retired: u64,
    waiting: Vec<Retired>,
    /// Those that were freed: in tests, their memory stays as long as the lists.
    #[cfg(test)]
    freed: Vec<Retired>,
}

impl Counts {
    fn free(&mut self, retired: Retired) {
        #[cfg(test)]
        {
            // SAFETY: the memory is there as long as the lists.
            assert!(!unsafe { &*retired.node }.is_freed.replace(true), "freed twice");
            self.freed.push(retired);
        }
        #[cfg(not(test))]
        free(retired);
    }
}

/// Sorted lists of keys.
pub(super) struct Lists<S> {
    scheme: S,
    pace: Pace,
    heads: Box<[CachePadded<AtomicPtr<Node>>]>,
    threads: Box<[CachePadded<Own>]>,
    /// Whether a thread has looked at a node that was freed.
    #[cfg(test)]
    pub looked: std::cell::Cell<bool>,
}

// SAFETY: nodes are reached through atomics and freed by the scheme; what is private to a thread is
// used by the one that has taken it.
unsafe impl<S: Scheme> Send for Lists<S> {}
// SAFETY: nodes are shared through atomics alone, and what is private to a thread stays so.
unsafe impl<S: Scheme> Sync for Lists<S> {}

impl<S: Scheme> Lists<S> {
    /// For this many threads, and one that fills it before and looks at it afterwards.
    pub fn new(threads: u32, lists: u64, pace: Pace) -> Self {
        let threads = threads.max(1) as usize;
        let scheme = S::new(threads, pace);
        let own = |me| {
            let allocated = scheme.clock().map_or(0, |clock| clock.first(me));
            // The threads take turns, as those do that have run for long.
            let retired = me as u64 % pace.frees;
            let counts = Counts { allocated, retired, ..Counts::default() };
            CachePadded(Own {
                is_taken: AtomicBool::new(false),
                private: std::cell::UnsafeCell::new(counts),
            })
        };
        let threads = (0..threads).map(own).collect();
        let heads = (0..lists).map(|_| CachePadded(AtomicPtr::new(null_mut()))).collect();
        Self {
            scheme,
            pace,
            heads,
            threads,
            #[cfg(test)]
            looked: std::cell::Cell::new(false),
        }
    }

    /// The calling thread's access.
    pub fn handle(&self) -> Handle<'_, S> {
        // Acquire: with the release by which another thread has given it back.
        let take = |own: &CachePadded<Own>| !own.is_taken.swap(true, Ordering::Acquire);
        let me = self.threads.iter().position(take).expect("no more threads than it was made for");
        self.scheme.arrive(me);
        Handle { lists: self, me }
    }

    /// Nodes that wait to be freed; to be called when no thread uses the lists.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        // SAFETY: no thread has it.
        self.threads.iter().map(|own| unsafe { &*own.private.get() }.waiting.len()).sum()
    }
}

impl<S> Drop for Lists<S> {
    fn drop(&mut self) {
        for head in &mut self.heads {
            let mut node = unmarked(*head.get_mut());
            while !node.is_null() {
                // SAFETY: no thread is left, and each node of a list is there once.
                node = unmarked(*unsafe { Box::from_raw(node) }.next.get_mut());
            }
        }
        for own in &mut self.threads {
            let counts = own.private.get_mut();
            counts.waiting.drain(..).for_each(free);
            #[cfg(test)]
            counts.freed.drain(..).for_each(free);
        }
    }
}

fn free(retired: Retired) {
    // SAFETY: it was taken out of its list, once, and nobody can look at it: the scheme says so, or
    // no thread is left.
    drop(unsafe { Box::from_raw(retired.node) });
}

/// A thread's access.
pub(super) struct Handle<'a, S: Scheme> {
    lists: &'a Lists<S>,
    me: usize,
}

/// Where a key is, or would be.
struct Place<'a> {
    link: &'a AtomicPtr<Node>,
    node: *mut Node,
    next: *mut Node,
    is_there: bool,
}

impl<'a, S: Scheme> Handle<'a, S> {
    fn read(&self, slot: usize, link: &AtomicPtr<Node>) -> *mut Node {
        self.lists.scheme.read(self.me, slot, link)
    }

    fn counts(&mut self) -> &mut Counts {
        // SAFETY: this handle has taken it, and is borrowed.
        unsafe { &mut *self.lists.threads[self.me].private.get() }
    }

    /// Looks for a key, and takes out what is marked on the way.
    fn find(&mut self, key: u64) -> Place<'a> {
        loop {
            if let Some(place) = self.walk(key) {
                return place;
            }
        }
    }

    /// One attempt: nothing if another thread has changed what is behind it.
    ///
    /// Each node is read by three protected reads, as in the published program. The slots change
    /// places with the nodes, so that the one before keeps its own: there it loses it.
    fn walk(&mut self, key: u64) -> Option<Place<'a>> {
        let heads = &self.lists.heads;
        let mut link: &'a AtomicPtr<Node> = &heads[(key % heads.len() as u64) as usize];
        let [mut before, mut current, mut after] = [0, 1, SLOTS - 1];
        let mut node = self.read(current, link);
        loop {
            if node.is_null() {
                return Some(Place { link, node, next: node, is_there: false });
            }
            // SAFETY: it is protected since it was read, when `link` led to it: the reads of
            // `link` below, and the one that ended the last turn, say that it was in the list.
            let at: &'a Node = unsafe { &*node };
            #[cfg(test)]
            self.lists.looked.set(self.lists.looked.get() | at.is_freed.get());
            let next = self.read(after, &at.next);
            if self.read(after, &at.next) != next {
                return None;
            }
            // SAFETY: nobody writes a key after its node was linked.
            let found = at.key.with(|found| unsafe { *found });
            if self.read(current, link) != node {
                return None;
            }
            if is_marked(next) {
                self.unlink(link, node, unmarked(next)).then_some(())?;
                (current, after) = (after, current);
            } else {
                if found >= key {
                    return Some(Place { link, node, next, is_there: found == key });
                }
                link = &at.next;
                (before, current, after) = (current, after, before);
            }
            node = unmarked(next);
        }
    }

    /// Takes a marked node out; whether it was this thread who did.
    fn unlink(&mut self, link: &AtomicPtr<Node>, node: *mut Node, next: *mut Node) -> bool {
        let done = swap(link, node, next);
        if done {
            self.retire(node);
        }
        done
    }

    fn retire(&mut self, node: *mut Node) {
        // SAFETY: this thread has taken it out, and frees it only below.
        let birth = unsafe { &(*node).birth }.with(|birth| unsafe { *birth });
        let Lists { scheme, pace, .. } = self.lists;
        let retired = scheme.clock().map_or(0, |clock| clock.now());
        let counts = self.counts();
        counts.waiting.push(Retired { node, birth, retired });
        counts.retired += 1;
        if S::FREES && counts.retired.is_multiple_of(pace.frees) {
            let ripe = scheme.ripe(&mut counts.waiting);
            ripe.into_iter().for_each(|one| counts.free(one));
        }
    }

    fn allocate(&mut self, key: u64) -> *mut Node {
        let counts = self.counts();
        counts.allocated += 1;
        let count = counts.allocated;
        let birth = self.lists.scheme.clock().map_or(0, |clock| clock.birth(count));
        let node = Box::new(Node {
            next: AtomicPtr::new(null_mut()),
            key: UnsafeCell::new(key),
            birth: UnsafeCell::new(birth),
            #[cfg(test)]
            is_freed: std::cell::Cell::new(false),
        });
        // What it is made with takes a write of its line.
        // SAFETY: nobody else has it.
        node.key.with_mut(|own| unsafe { *own = key });
        Box::into_raw(node)
    }

    fn within<R>(&mut self, operation: impl FnOnce(&mut Self) -> R) -> R {
        self.lists.scheme.enter(self.me);
        let result = operation(self);
        self.lists.scheme.leave(self.me);
        result
    }

    /// Links a node unless its key is there; whether it was not.
    fn link(&mut self, key: u64, node: *mut Node) -> bool {
        loop {
            let place = self.find(key);
            if place.is_there {
                // SAFETY: nobody else has seen it.
                drop(unsafe { Box::from_raw(node) });
                return false;
            }
            if Self::link_at(&place, node) {
                return true;
            }
        }
    }

    /// Links a node where its key would be; not if that has changed.
    fn link_at(place: &Place<'_>, node: *mut Node) -> bool {
        // SAFETY: nobody else has seen it yet. Release: as the link to it.
        unsafe { &*node }.next.store(place.node, Ordering::Release);
        // AcqRel: who reads the link sees what the node has.
        swap(place.link, place.node, node)
    }

    /// Links a node in the place of that which has its key; whether there was none.
    fn replace(&mut self, key: u64, node: *mut Node) -> bool {
        loop {
            let place = self.find(key);
            if !place.is_there {
                if Self::link_at(&place, node) {
                    return true;
                }
                continue;
            }
            // SAFETY: nobody else has seen it yet. Release: as the link to it.
            unsafe { &*node }.next.store(place.next, Ordering::Release);
            // The mark that takes the old one out links the new one behind it.
            if self.mark(&place, node) {
                return false;
            }
        }
    }

    /// Marks a node, after which `next` follows, and takes it out; not if it has changed.
    fn mark(&mut self, place: &Place<'a>, next: *mut Node) -> bool {
        // SAFETY: it is protected until the operation ends.
        let link = unsafe { &(*place.node).next };
        if !swap(link, place.next, marked(next)) {
            return false;
        }
        if !self.unlink(place.link, place.node, next) {
            // SAFETY: the node is protected still; nobody writes a key after its node was linked.
            let key = unsafe { &(*place.node).key }.with(|key| unsafe { *key });
            self.find(key);
        }
        true
    }

    /// Takes the node of a key out; whether there was one.
    fn take(&mut self, key: u64) -> bool {
        loop {
            let place = self.find(key);
            if !place.is_there {
                return false;
            }
            if self.mark(&place, place.next) {
                return true;
            }
        }
    }
}

/// AcqRel: who reads the link sees what the node has, and, of a mark, what was done before.
/// Acquire: so does who finds another node.
fn swap(link: &AtomicPtr<Node>, from: *mut Node, to: *mut Node) -> bool {
    link.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

impl<S: Scheme> Access for Handle<'_, S> {
    fn get(&mut self, key: u64) -> bool {
        self.within(|this| this.find(key).is_there)
    }

    fn insert(&mut self, key: u64) -> bool {
        let node = self.allocate(key);
        self.within(|this| this.link(key, node))
    }

    fn put(&mut self, key: u64) -> bool {
        let node = self.allocate(key);
        self.within(|this| this.replace(key, node))
    }

    fn remove(&mut self, key: u64) -> bool {
        self.within(|this| this.take(key))
    }
}

impl<S: Scheme> Drop for Handle<'_, S> {
    fn drop(&mut self) {
        self.lists.scheme.depart(self.me);
        // Release: with the acquire of who takes it next.
        self.lists.threads[self.me].is_taken.store(false, Ordering::Release);
    }
}

//! Harris' list in M. Michael's form, for schemes that protect nodes one by one, and a table of
//! such lists, indexed by the remainder of the key.

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

/// A thread's data.
struct Own {
    is_taken: AtomicBool,
    /// For the thread that has taken it.
    private: std::cell::UnsafeCell<Counts>,
}

#[derive(Default)]
struct Counts {
    allocated: u64,
    retired: u64,
    waiting: Vec<Retired>,
    /// The freed nodes. In tests, their memory stays as long as the lists.
    #[cfg(test)]
    freed: Vec<Retired>,
}

impl Counts {
    fn free(&mut self, retired: Retired) {
        #[cfg(test)]
        {
            // SAFETY: the memory stays as long as the lists.
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
    /// Whether a thread has read a node that was freed.
    #[cfg(test)]
    pub looked: std::cell::Cell<bool>,
}

// SAFETY: threads reach nodes through atomics, and the scheme frees them; only the thread that has
// taken private data uses it.
unsafe impl<S: Scheme> Send for Lists<S> {}
// SAFETY: threads share nodes through atomics alone, and private data stays private.
unsafe impl<S: Scheme> Sync for Lists<S> {}

impl<S: Scheme> Lists<S> {
    /// Creates lists for this many threads, and for one more that fills and verifies them.
    pub fn new(threads: u32, lists: u64, pace: Pace) -> Self {
        let threads = threads.max(1) as usize;
        let scheme = S::new(threads, pace);
        let own = |me| {
            let allocated = scheme.clock().map_or(0, |clock| clock.first(me));
            // Threads free nodes at different times, as threads do that have run for some time.
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

    /// The calling thread's handle.
    pub fn handle(&self) -> Handle<'_, S> {
        // Acquire: partner of the Release by which another thread has given it back.
        let take = |own: &CachePadded<Own>| !own.is_taken.swap(true, Ordering::Acquire);
        let me = self
            .threads
            .iter()
            .position(take)
            .expect("there are no more threads than `new` was told");
        self.scheme.arrive(me);
        Handle { lists: self, me }
    }

    /// The number of nodes that wait to be freed. Call it when no thread uses the lists.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        // SAFETY: no thread uses the lists (the test calls this when they have ended).
        self.threads.iter().map(|own| unsafe { &*own.private.get() }.waiting.len()).sum()
    }
}

impl<S> Drop for Lists<S> {
    fn drop(&mut self) {
        for head in &mut self.heads {
            let mut node = unmarked(*head.get_mut());
            while !node.is_null() {
                // SAFETY: no thread is left, and each node is in a list once.
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
    // SAFETY: the node was removed from its list, once, and no thread can read it: the scheme
    // guarantees that, or no thread is left.
    drop(unsafe { Box::from_raw(retired.node) });
}

/// A thread's handle.
pub(super) struct Handle<'a, S: Scheme> {
    lists: &'a Lists<S>,
    me: usize,
}

/// The nodes between which a key is or would be.
struct Window<'a> {
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
        // SAFETY: this handle has taken it, and is borrowed exclusively.
        unsafe { &mut *self.lists.threads[self.me].private.get() }
    }

    /// Searches for a key, and removes marked nodes on the way.
    fn find(&mut self, key: u64) -> Window<'a> {
        loop {
            if let Some(window) = self.walk(key) {
                return window;
            }
        }
    }

    /// One attempt; `None` if another thread has changed a link on the way.
    ///
    /// It reads each node by three protected reads, as in the published program. The slots move
    /// along with the nodes, so that the node before the present one stays protected: in the
    /// published program it does not.
    fn walk(&mut self, key: u64) -> Option<Window<'a>> {
        let heads = &self.lists.heads;
        let mut link: &'a AtomicPtr<Node> = &heads[(key % heads.len() as u64) as usize];
        let [mut before, mut current, mut after] = [0, 1, SLOTS - 1];
        let mut node = self.read(current, link);
        loop {
            if node.is_null() {
                return Some(Window { link, node, next: node, is_there: false });
            }
            // SAFETY: the node has been protected since `link` led to it. The reads of `link`
            // below, and the one at the end of the last iteration, show that it was in the list
            // then.
            let at: &'a Node = unsafe { &*node };
            #[cfg(test)]
            self.lists.looked.set(self.lists.looked.get() | at.is_freed.get());
            let next = self.read(after, &at.next);
            if self.read(after, &at.next) != next {
                return None;
            }
            // SAFETY: no thread writes a key after its node was linked.
            let found = at.key.with(|found| unsafe { *found });
            if self.read(current, link) != node {
                return None;
            }
            if is_marked(next) {
                self.unlink(link, node, unmarked(next)).then_some(())?;
                (current, after) = (after, current);
            } else {
                if found >= key {
                    return Some(Window { link, node, next, is_there: found == key });
                }
                link = &at.next;
                (before, current, after) = (current, after, before);
            }
            node = unmarked(next);
        }
    }

    /// Removes a marked node; returns whether it was this thread that did.
    fn unlink(&mut self, link: &AtomicPtr<Node>, node: *mut Node, next: *mut Node) -> bool {
        let done = swap(link, node, next);
        if done {
            self.retire(node);
        }
        done
    }

    fn retire(&mut self, node: *mut Node) {
        // SAFETY: this thread has removed it, and frees it only below.
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
        // Making a node costs a write of its line. SAFETY: the node was never linked, so that no
        // other thread has it.
        node.key.with_mut(|own| unsafe { *own = key });
        Box::into_raw(node)
    }

    fn within<R>(&mut self, operation: impl FnOnce(&mut Self) -> R) -> R {
        self.lists.scheme.enter(self.me);
        let result = operation(self);
        self.lists.scheme.leave(self.me);
        result
    }

    /// Links a node unless its key is there; returns whether it did.
    fn link(&mut self, key: u64, node: *mut Node) -> bool {
        loop {
            let window = self.find(key);
            if window.is_there {
                // SAFETY: the node is new, and the compare-and-swap has not shown it to other
                // threads.
                drop(unsafe { Box::from_raw(node) });
                return false;
            }
            if Self::link_at(&window, node) {
                return true;
            }
        }
    }

    /// Links a node in the window; returns false if the window has changed.
    fn link_at(window: &Window<'_>, node: *mut Node) -> bool {
        // SAFETY: no other thread has seen it yet. Release: as the link to it.
        unsafe { &*node }.next.store(window.node, Ordering::Release);
        // AcqRel: a thread that reads the link sees what the node has.
        swap(window.link, window.node, node)
    }

    /// Links a node, or replaces the one with its key; returns whether there was none.
    fn replace(&mut self, key: u64, node: *mut Node) -> bool {
        loop {
            let window = self.find(key);
            if !window.is_there {
                if Self::link_at(&window, node) {
                    return true;
                }
                continue;
            }
            // SAFETY: no other thread has seen it yet. Release: as the link to it.
            unsafe { &*node }.next.store(window.next, Ordering::Release);
            // The mark that removes the old node links the new one behind it.
            if self.mark(&window, node) {
                return false;
            }
        }
    }

    /// Marks a node, with `next` as its successor, and removes it; returns false if it has changed.
    fn mark(&mut self, window: &Window<'a>, next: *mut Node) -> bool {
        // SAFETY: the node is protected until the operation ends.
        let link = unsafe { &(*window.node).next };
        if !swap(link, window.next, marked(next)) {
            return false;
        }
        if !self.unlink(window.link, window.node, next) {
            // SAFETY: the node is still protected, and no thread writes a key after its node was
            // linked.
            let key = unsafe { &(*window.node).key }.with(|key| unsafe { *key });
            self.find(key);
        }
        true
    }

    /// Removes the node of a key; returns whether there was one.
    fn take(&mut self, key: u64) -> bool {
        loop {
            let window = self.find(key);
            if !window.is_there {
                return false;
            }
            if self.mark(&window, window.next) {
                return true;
            }
        }
    }
}

/// AcqRel: a thread that reads the link sees what the node has and, if it sees a mark, what was
/// done before. Acquire on failure: the same for a thread that finds another node.
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
        // Release: partner of the Acquire of the thread that takes it next.
        self.lists.threads[self.me].is_taken.store(false, Ordering::Release);
    }
}

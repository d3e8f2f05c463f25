//! `harris`: a sorted list without locks.
//!
//! # Idea
//!
//! A node is taken out in two steps. First its own link is marked, in the lowest bit: from then on the key is gone, and the
//! link cannot change any more, so that nothing is put in behind a node that is about to go. Then the link before it is led
//! past it, by whoever gets there first: the one who has marked it, or any other who looks for its place and finds marked
//! nodes in the way. Each step is one compare-and-swap. A look-up takes no step of others: it walks over marked nodes.
//!
//! # Source
//!
//! T. Harris, "A pragmatic implementation of non-blocking linked-lists", DISC 2001: a row of marked nodes is taken out with one
//! compare-and-swap. That look-ups do not help is from M. Herlihy and N. Shavit, "The art of multiprocessor programming". Who
//! leads the link past nodes retires them, to be freed by a [domain](crate::reclaim); the paper leaves freeing open.
//!
//! # Memory order
//!
//! A node is complete before a link leads to it (Release), and who follows the link sees that (Acquire); that goes for links
//! in marked nodes, too: a mark is a read-modify-write, which passes on what was released with the link. Who leads a link past
//! nodes passes on what is behind them (Acquire, Release). Insertion takes effect
//! with its compare-and-swap, a removal with its mark, a look-up that finds the key when it has seen the key's node without a
//! mark. One that does not find it: if it stands on nodes that were not marked when it read their links, then at the last
//! such moment; a marked node's link is as it was when it was marked, which is after the look-up began, or else the link
//! before led past it already.
//!
//! # Cost
//!
//! An update is one compare-and-swap, two to remove, and an allocation; those who meet at one place try again from the front.
//! Nodes are 8 bytes larger than what is in them.
//!
//! # When not to use it
//!
//! Where somebody must see several keys as they were at one moment. For values that are replaced: it is a set.

use alloc::boxed::Box;
use core::fmt;
use core::ptr::null_mut;

use crate::reclaim::{self, Config, Domain, Guard};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{mutation, order};
use crate::{ConcurrentSet, SetHandle};

/// A sorted list without locks.
///
/// Invariant: the links from `head`, without their marks, lead through nodes that came from `Box`, in ascending order of
/// their keys, to null. `head` has no mark.
pub struct HarrisList<K> {
    head: AtomicPtr<Node<K>>,
    domain: Domain,
}

struct Node<K> {
    /// The next node; with [`MARK`], and for good, if this one is taken out.
    next: AtomicPtr<Node<K>>,
    key: K,
}

const MARK: usize = 1;

fn marked<K>(link: *mut Node<K>) -> *mut Node<K> {
    link.map_addr(|address| address | MARK)
}

fn is_marked<K>(link: *mut Node<K>) -> bool {
    link.addr() & MARK != 0
}

fn unmarked<K>(link: *mut Node<K>) -> *mut Node<K> {
    link.map_addr(|address| address & !MARK)
}

/// Where a key is, or would be.
struct Place<'g, K> {
    /// The link that leads there.
    link: &'g AtomicPtr<Node<K>>,
    /// The first node that is not before the key; may be null.
    node: *mut Node<K>,
    /// Whether that has the key.
    found: bool,
}

// SAFETY: the list owns its nodes; threads that read share the keys, and any may drop one.
unsafe impl<K: Send + Sync> Send for HarrisList<K> {}
// SAFETY: as above.
unsafe impl<K: Send + Sync> Sync for HarrisList<K> {}

impl<K> HarrisList<K> {
    /// Without keys; what is taken out waits in a domain like this.
    pub fn new(config: Config) -> Self {
        Self { head: AtomicPtr::new(null_mut()), domain: Domain::new(config) }
    }

    /// Where what was taken out waits until nobody can be on it.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl<K: Ord + Send> HarrisList<K> {
    #[inline]
    fn contains(&self, key: &K, _guard: &Guard) -> bool {
        // Acquire: partner of the Releases of links.
        let mut link = self.head.load(order!(Acquire, "harris-head"));
        // SAFETY: null, or a node that could be reached during the section, and is not dropped before it ends.
        while let Some(node) = unsafe { unmarked(link).as_ref() } {
            // Acquire: as above.
            link = node.next.load(order!(Acquire, "harris-walk"));
            if node.key >= *key {
                return node.key == *key && !is_marked(link);
            }
        }
        false
    }

    /// The place of a key, from which marked nodes have been taken away.
    fn find<'g>(&'g self, key: &K, guard: &'g Guard) -> Place<'g, K> {
        loop {
            if let Some(place) = self.try_find(key, guard) {
                return place;
            }
        }
    }

    /// The same, unless another thread changes the place meanwhile.
    fn try_find<'g>(&'g self, key: &K, guard: &'g Guard) -> Option<Place<'g, K>> {
        let mut link = &self.head;
        // Acquire: partner of the Releases of links.
        let mut first = link.load(order!(Acquire, "harris-find-head"));
        let mut node = first;
        let found = loop {
            // SAFETY: null, or a node that could be reached during the section, and is not dropped before it ends.
            let Some(there) = (unsafe { node.as_ref() }) else { break false };
            // Acquire: as above.
            let next = there.next.load(order!(Acquire, "harris-find-walk"));
            if is_marked(next) {
                node = unmarked(next);
            } else if there.key < *key {
                (link, first, node) = (&there.next, next, next);
            } else {
                break there.key == *key;
            }
        };
        let clean = first == node || Self::take_away(link, first, node, guard);
        clean.then_some(Place { link, node, found })
    }

    /// Leads a link past the nodes from `first` up to `end`, all of which are marked; says whether it still led there.
    #[cold]
    fn take_away(
        link: &AtomicPtr<Node<K>>,
        first: *mut Node<K>,
        end: *mut Node<K>,
        guard: &Guard,
    ) -> bool {
        // Release: partner of the Acquires that follow the link. Relaxed on failure: all is read anew.
        let (done, failed) = (order!(Release, "harris-unlink"), Ordering::Relaxed);
        if link.compare_exchange(first, end, done, failed).is_err() {
            return false;
        }
        let mut node = first;
        while node != end {
            // Relaxed: marked, and so what was read before.
            // SAFETY: a node that could be reached during the section.
            let next = unmarked(unsafe { &*node }.next.load(Ordering::Relaxed));
            // SAFETY: from `Box`; the link leads past it, and this thread has made it do so.
            unsafe { guard.retire(node) };
            node = next;
        }
        true
    }

    fn insert(&self, key: K, guard: &Guard) -> bool {
        let mut place = self.find(&key, guard);
        if place.found {
            return false;
        }
        let node = Box::into_raw(Box::new(Node { next: AtomicPtr::new(place.node), key }));
        // SAFETY: this thread's own until a link leads to it, and there as long as the section then.
        let new = unsafe { &*node };
        loop {
            // Release: partner of the Acquires that follow the link. Relaxed on failure: all is read anew.
            let (done, failed) = (order!(Release, "harris-link"), Ordering::Relaxed);
            if place.link.compare_exchange(place.node, node, done, failed).is_ok() {
                return true;
            }
            place = self.find(&new.key, guard);
            if place.found {
                // SAFETY: from `Box`, and no link leads to it.
                drop(unsafe { Box::from_raw(node) });
                return false;
            }
            new.next.store(place.node, Ordering::Relaxed); // Relaxed: released by the swap above
        }
    }

    fn remove(&self, key: &K, guard: &Guard) -> bool {
        loop {
            let place = self.find(key, guard);
            if !place.found {
                return false;
            }
            // SAFETY: found, and so not null, and there as long as the section.
            let node = unsafe { &*place.node };
            // Acquire: partner of the Releases of links: it is passed on below.
            let next = node.next.load(order!(Acquire, "harris-remove"));
            if is_marked(next) {
                continue;
            }
            // Relaxed: the link leads where it did, and a read-modify-write passes on what was released with it. On
            // failure, all is read anew.
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            let mark = if mutation!("harris-unmarked") { next } else { marked(next) };
            if node.next.compare_exchange(next, mark, done, failed).is_err() {
                continue;
            }
            if !Self::take_away(place.link, place.node, next, guard) {
                self.find(key, guard); // takes it away
            }
            return true;
        }
    }
}

impl<K> Default for HarrisList<K> {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl<K> Drop for HarrisList<K> {
    fn drop(&mut self) {
        // Relaxed, both: nobody else has the list.
        let mut link = self.head.load(Ordering::Relaxed);
        while !unmarked(link).is_null() {
            // SAFETY: from `Box`, and nobody else's now: nodes that were retired cannot be reached.
            link = unsafe { Box::from_raw(unmarked(link)) }.next.load(Ordering::Relaxed);
        }
    }
}

impl<K> fmt::Debug for HarrisList<K> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("HarrisList").field("domain", &self.domain).finish_non_exhaustive()
    }
}

/// A thread's access to a [`HarrisList`].
pub struct HarrisHandle<'a, K> {
    list: &'a HarrisList<K>,
    handle: reclaim::Handle<'a>,
}

impl<K> fmt::Debug for HarrisHandle<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("HarrisHandle").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl<K: Ord + Send + Sync> ConcurrentSet<K> for HarrisList<K> {
    type Handle<'a>
        = HarrisHandle<'a, K>
    where
        Self: 'a;

    fn handle(&self) -> HarrisHandle<'_, K> {
        HarrisHandle { list: self, handle: self.domain.register() }
    }
}

impl<K: Ord + Send> SetHandle<K> for HarrisHandle<'_, K> {
    fn contains(&mut self, key: &K) -> bool {
        self.list.contains(key, &self.handle.pin())
    }

    fn insert(&mut self, key: K) -> bool {
        self.list.insert(key, &self.handle.pin())
    }

    fn remove(&mut self, key: &K) -> bool {
        self.list.remove(key, &self.handle.pin())
    }
}

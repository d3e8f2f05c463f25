//! Hazard pointers (M. Michael, 2004): a thread announces each node before it reads it.

use std::ptr::null_mut;

use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicPtr, Ordering};

use super::scheme::{Clock, Node, Pace, Retired, SLOTS, Scheme, take, unmarked};

pub(super) struct Pointers {
    /// The nodes that each thread protects, each on a line of its own.
    protected: Box<[CachePadded<AtomicPtr<Node>>]>,
}

impl Pointers {
    fn set(&self, me: usize, slot: usize, node: *mut Node) {
        // SeqCst: with the loads of the thread that frees. Either that thread sees the store, or it
        // removed the node before, and the link that is read next leads elsewhere.
        self.protected[me * SLOTS + slot].store(node, Ordering::SeqCst);
    }
}

impl Scheme for Pointers {
    const NAME: &'static str = "hazard";

    fn new(threads: usize, _: Pace) -> Self {
        let slot = |_| CachePadded(AtomicPtr::new(null_mut()));
        Self { protected: (0..threads * SLOTS).map(slot).collect() }
    }

    fn enter(&self, _: usize) {}

    fn leave(&self, me: usize) {
        // Three such stores end each operation of the published program as well.
        (0..SLOTS).for_each(|slot| self.set(me, slot, null_mut()));
    }

    fn read(&self, me: usize, slot: usize, link: &AtomicPtr<Node>) -> *mut Node {
        loop {
            // Acquire: partner of the Release by which the node was linked.
            let found = link.load(Ordering::Acquire);
            self.set(me, slot, unmarked(found));
            // SeqCst: after the store.
            if link.load(Ordering::SeqCst) == found {
                return found;
            }
        }
    }

    fn clock(&self) -> Option<&Clock> {
        None
    }

    fn ripe(&self, retired: &mut Vec<Retired>) -> Vec<Retired> {
        // The scan looks for each node in the slots of all threads, as in the published program.
        // SeqCst: partner of `set`.
        let protects = |node| self.protected.iter().any(|slot| slot.load(Ordering::SeqCst) == node);
        take(retired, 1, |one| !protects(one.node))
    }
}

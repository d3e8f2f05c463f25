//! The interface between a list and a reclamation scheme, and the parts that all schemes share.

use manycore_sim::thread;
use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use manycore_simulated::sync::cell::UnsafeCell;

/// A node of a list.
pub(super) struct Node {
    pub next: AtomicPtr<Node>,
    pub key: UnsafeCell<u64>,
    /// The era in which the node was made.
    pub birth: UnsafeCell<u64>,
    /// Whether the node was freed. The memory stays then, so that tests notice a thread that reads
    /// it.
    #[cfg(test)]
    pub is_freed: std::cell::Cell<bool>,
}

/// The lowest bit of a link: set if the node that contains the link was removed.
pub(super) const MARK: usize = 1;

pub(super) fn unmarked(link: *mut Node) -> *mut Node {
    link.map_addr(|address| address & !MARK)
}

/// A thread's handle of a table of lists.
pub(super) trait Access {
    /// Whether the key is there.
    fn get(&mut self, key: u64) -> bool;

    /// Inserts the key; returns whether it was not there.
    fn insert(&mut self, key: u64) -> bool;

    /// Inserts the key, or replaces its node; returns whether it was not there.
    fn put(&mut self, key: u64) -> bool;

    /// Removes the key; returns whether it was there.
    fn remove(&mut self, key: u64) -> bool;
}

/// How often a thread advances the era and frees nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The era advances after this many allocations of all threads, on average.
    pub era: u64,
    /// A thread frees what it can after it has removed this many nodes.
    pub frees: u64,
}

impl Default for Pace {
    /// As in the published program.
    fn default() -> Self {
        Self { era: 150, frees: 30 }
    }
}

/// A node that was removed from its list.
#[derive(Clone, Copy)]
pub(super) struct Retired {
    pub node: *mut Node,
    /// The eras in which the node was made and removed.
    pub birth: u64,
    pub retired: u64,
}

/// How many nodes a thread protects at a time: a node of a list, the one before and the one after.
pub(super) const SLOTS: usize = 3;

/// A reclamation scheme, which knows the nodes that no thread can read any more. `me` is the number
/// of the calling thread, which no other thread has at the same time.
pub(super) trait Scheme: Send + Sync + 'static {
    /// The scheme's name in the sets.
    const NAME: &'static str;

    /// Whether the scheme frees nodes at all.
    const FREES: bool = true;

    fn new(threads: usize, pace: Pace) -> Self;

    /// The thread gets its number.
    fn arrive(&self, _me: usize) {}

    /// The thread gives its number back.
    fn depart(&self, _me: usize) {}

    /// An operation begins.
    fn enter(&self, me: usize);

    /// The operation ends; from here on it holds no node.
    fn leave(&self, me: usize);

    /// Reads a link. If the node to which it leads has not been removed yet, it is not freed before
    /// the operation ends or the slot gets another node.
    fn read(&self, _me: usize, _slot: usize, link: &AtomicPtr<Node>) -> *mut Node {
        // Acquire: partner of the Release by which the node was linked.
        link.load(Ordering::Acquire)
    }

    /// The scheme's clock, if it has one.
    fn clock(&self) -> Option<&Clock>;

    /// Takes out of `retired` the nodes that no thread can read.
    fn ripe(&self, retired: &mut Vec<Retired>) -> Vec<Retired>;
}

/// The reservation of a thread that has none.
pub(super) const NONE: u64 = u64::MAX;

/// A word of each thread, on a line of its own.
pub(super) type Words = Box<[CachePadded<AtomicU64>]>;

pub(super) fn words(threads: usize, value: u64) -> Words {
    (0..threads).map(|_| CachePadded(AtomicU64::new(value))).collect()
}

/// The era, which threads advance now and then.
pub(super) struct Clock {
    era: CachePadded<AtomicU64>,
    threads: u64,
    pace: u64,
}

impl Clock {
    pub fn new(threads: usize, pace: Pace) -> Self {
        // For hazard eras, 0 means none.
        Self { era: CachePadded(AtomicU64::new(1)), threads: threads as u64, pace: pace.era }
    }

    pub fn now(&self) -> u64 {
        // SeqCst: follows the store of a reservation in the total order. What is read afterwards is
        // read with the reservation in place.
        self.era.load(Ordering::SeqCst)
    }

    /// Counts a thread's allocation with number `count`; returns the era of the new node.
    pub fn birth(&self, count: u64) -> u64 {
        if count.is_multiple_of(self.pace * self.threads) {
            // SeqCst: as in `now`.
            self.era.fetch_add(1, Ordering::SeqCst);
        }
        self.now()
    }

    /// The start of a thread's count. The counts differ, as those of threads that have run for some
    /// time.
    pub fn first(&self, me: usize) -> u64 {
        me as u64 * self.pace
    }
}

/// Takes the nodes for which `ripe` returns true out of a list. Each test takes `cycles` of
/// computation.
pub(super) fn take(
    retired: &mut Vec<Retired>,
    cycles: u64,
    mut ripe: impl FnMut(&Retired) -> bool,
) -> Vec<Retired> {
    let (taken, kept) = retired.drain(..).partition(|one| {
        thread::compute(cycles);
        ripe(one)
    });
    *retired = kept;
    taken
}

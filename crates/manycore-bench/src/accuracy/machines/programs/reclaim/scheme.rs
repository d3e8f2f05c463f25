//! What a list asks of a scheme, what is asked of a list, and what all schemes need.

use manycore_sim::thread;
use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use manycore_simulated::sync::cell::UnsafeCell;

/// A node of a list.
pub(super) struct Node {
    pub next: AtomicPtr<Node>,
    pub key: UnsafeCell<u64>,
    /// The era in which it was made.
    pub birth: UnsafeCell<u64>,
    /// Whether it was freed: the memory stays then, so that tests see who looks at it.
    #[cfg(test)]
    pub is_freed: std::cell::Cell<bool>,
}

/// The lowest bit of a link says that the node it is in was taken out.
pub(super) const MARK: usize = 1;

pub(super) fn unmarked(link: *mut Node) -> *mut Node {
    link.map_addr(|address| address & !MARK)
}

/// A thread's access to a table of lists.
pub(super) trait Access {
    /// Whether the key is there.
    fn get(&mut self, key: u64) -> bool;

    /// Adds it; whether it was not there.
    fn insert(&mut self, key: u64) -> bool;

    /// Adds it, in place of what was there; whether nothing was.
    fn put(&mut self, key: u64) -> bool;

    /// Takes it out; whether it was there.
    fn remove(&mut self, key: u64) -> bool;
}

/// How often something is done, in steps of a thread's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// After this many allocations of all threads, on average, there is a new era.
    pub era: u64,
    /// After this many nodes that a thread took out, it frees those that it can.
    pub frees: u64,
}

impl Default for Pace {
    /// As the published program has it.
    fn default() -> Self {
        Self { era: 150, frees: 30 }
    }
}

/// A node that was taken out of its list.
#[derive(Clone, Copy)]
pub(super) struct Retired {
    pub node: *mut Node,
    /// The eras in which it was made and taken out.
    pub birth: u64,
    pub retired: u64,
}

/// How many nodes a thread protects at a time: of a list, a node, the one before and the one after.
pub(super) const SLOTS: usize = 3;

/// A way to know which nodes nobody looks at any more. `me` is the number of the calling thread,
/// which no other has at the same time.
pub(super) trait Scheme: Send + Sync + 'static {
    /// What it is called in the sets.
    const NAME: &'static str;

    /// Whether nodes are freed at all.
    const FREES: bool = true;

    fn new(threads: usize, pace: Pace) -> Self;

    /// A thread gets its number.
    fn arrive(&self, _me: usize) {}

    /// It gives it back.
    fn depart(&self, _me: usize) {}

    /// An operation starts.
    fn enter(&self, me: usize);

    /// It ends: it keeps no node.
    fn leave(&self, me: usize);

    /// Reads a link. The node that it leads to, if it was not taken out yet, is not freed before
    /// the operation ends or the slot gets another.
    fn read(&self, _me: usize, _slot: usize, link: &AtomicPtr<Node>) -> *mut Node {
        // Acquire: with the release by which the node was linked.
        link.load(Ordering::Acquire)
    }

    /// The clock of a scheme that has one.
    fn clock(&self) -> Option<&Clock>;

    /// Takes those out of the list that nobody can look at.
    fn ripe(&self, retired: &mut Vec<Retired>) -> Vec<Retired>;
}

/// What a reservation says of a thread that has none.
pub(super) const NONE: u64 = u64::MAX;

/// A word of each thread, on a line of its own.
pub(super) type Words = Box<[CachePadded<AtomicU64>]>;

pub(super) fn words(threads: usize, value: u64) -> Words {
    (0..threads).map(|_| CachePadded(AtomicU64::new(value))).collect()
}

/// The era, which each thread counts up now and then.
pub(super) struct Clock {
    era: CachePadded<AtomicU64>,
    threads: u64,
    pace: u64,
}

impl Clock {
    pub fn new(threads: usize, pace: Pace) -> Self {
        // Hazard eras have 0 for none.
        Self { era: CachePadded(AtomicU64::new(1)), threads: threads as u64, pace: pace.era }
    }

    pub fn now(&self) -> u64 {
        // SeqCst: after it nothing is read that was read before the reservation, whose store it
        // follows in the order of all.
        self.era.load(Ordering::SeqCst)
    }

    /// A thread allocates for the `count`th time: the era of the new node.
    pub fn birth(&self, count: u64) -> u64 {
        if count.is_multiple_of(self.pace * self.threads) {
            // SeqCst: as `now`.
            self.era.fetch_add(1, Ordering::SeqCst);
        }
        self.now()
    }

    /// Where a thread's count begins: the threads take turns, as those do that have run for long.
    pub fn first(&self, me: usize) -> u64 {
        me as u64 * self.pace
    }
}

/// Takes those out of a list that are `ripe`, for `cycles` of computation each.
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

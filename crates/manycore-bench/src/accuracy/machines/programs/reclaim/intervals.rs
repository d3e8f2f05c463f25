//! Schemes in which a thread protects all nodes that were alive in an era. Hazard eras have one era
//! for each node that the thread holds (P. Ramalhete, A. Correia, 2017). Interval-based reclamation
//! has the first and the last era of an operation (2GEIBR; H. Wen and others, 2018).

use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::scheme::{Clock, NONE, Node, Pace, Retired, SLOTS, Scheme, Words, take, words};

/// Reads a link in an era that `reserved` announces. A node to which it leads was made in that era
/// or before.
fn read_in(clock: &Clock, reserved: &AtomicU64, link: &AtomicPtr<Node>) -> *mut Node {
    // Relaxed: only this thread writes the word.
    let mut before = reserved.load(Ordering::Relaxed);
    loop {
        // Acquire: partner of the Release by which the node was linked.
        let found = link.load(Ordering::Acquire);
        let now = clock.now();
        if now == before {
            return found;
        }
        // SeqCst: with the loads of the thread that frees. Either that thread sees the store, or
        // the era has advanced and the link is read again.
        reserved.store(now, Ordering::SeqCst);
        before = now;
    }
}

/// The value of a slot of [`Eras`] that protects nothing.
const NO_ERA: u64 = 0;

/// Hazard eras.
pub(super) struct Eras {
    clock: Clock,
    reserved: Box<[CachePadded<[AtomicU64; SLOTS]>]>,
}

impl Scheme for Eras {
    const NAME: &'static str = "hazard-eras";

    fn new(threads: usize, pace: Pace) -> Self {
        Self {
            clock: Clock::new(threads, pace),
            reserved: (0..threads).map(|_| CachePadded::default()).collect(),
        }
    }

    fn enter(&self, _: usize) {}

    fn leave(&self, me: usize) {
        // SeqCst: as in the published program, where three such stores end each operation.
        self.reserved[me].iter().for_each(|slot| slot.store(NO_ERA, Ordering::SeqCst));
    }

    fn read(&self, me: usize, slot: usize, link: &AtomicPtr<Node>) -> *mut Node {
        read_in(&self.clock, &self.reserved[me][slot], link)
    }

    fn clock(&self) -> Option<&Clock> {
        Some(&self.clock)
    }

    fn ripe(&self, retired: &mut Vec<Retired>) -> Vec<Retired> {
        // The scan loads the slots of all threads for each node, as in the published program.
        // SeqCst: partner of `read_in`.
        let protects = |one: &Retired, slot: &AtomicU64| {
            let era = slot.load(Ordering::SeqCst);
            era != NO_ERA && one.birth <= era && era <= one.retired
        };
        let slots = || self.reserved.iter().flat_map(|slots| slots.iter());
        take(retired, 1, |one| !slots().any(|slot| protects(one, slot)))
    }
}

/// The first and the last era of an operation.
pub(super) struct Interval {
    clock: Clock,
    first: Words,
    last: Words,
}

impl Scheme for Interval {
    const NAME: &'static str = "interval";

    fn new(threads: usize, pace: Pace) -> Self {
        Self {
            clock: Clock::new(threads, pace),
            first: words(threads, NONE),
            last: words(threads, NONE),
        }
    }

    fn enter(&self, me: usize) {
        let now = self.clock.now();
        // SeqCst: a thread that frees nodes sees them; otherwise it has removed its nodes before
        // the reads that follow here.
        self.first[me].store(now, Ordering::SeqCst);
        self.last[me].store(now, Ordering::SeqCst);
    }

    fn leave(&self, me: usize) {
        // Release: orders the reads of nodes before it.
        self.last[me].store(NONE, Ordering::Release);
        self.first[me].store(NONE, Ordering::Release);
    }

    fn read(&self, me: usize, _: usize, link: &AtomicPtr<Node>) -> *mut Node {
        read_in(&self.clock, &self.last[me], link)
    }

    fn clock(&self) -> Option<&Clock> {
        Some(&self.clock)
    }

    fn ripe(&self, retired: &mut Vec<Retired>) -> Vec<Retired> {
        // Loads the first era before the last one. An operation that begins in between is later
        // than all of these nodes. One that ends in between has no last era, and its first era
        // still protects. SeqCst: partner of `enter` and `read_in`.
        let eras = |(first, last): (&CachePadded<AtomicU64>, &CachePadded<AtomicU64>)| {
            (first.load(Ordering::SeqCst), last.load(Ordering::SeqCst))
        };
        let eras: Vec<(u64, u64)> = self.first.iter().zip(&self.last).map(eras).collect();
        let meets = |one: &Retired| {
            eras.iter().any(|(first, last)| one.birth <= *last && *first <= one.retired)
        };
        // A comparison with one thread's eras takes a cycle.
        take(retired, eras.len() as u64, |one| !meets(one))
    }
}

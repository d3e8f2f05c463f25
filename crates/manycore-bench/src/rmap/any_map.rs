//! A reverse map, or a replacement for one, of any mechanism.

use std::collections::VecDeque;

use manycore_traits::{Interval, ReverseMap};

/// A reverse map behind an interface that hides its mechanism, so that the operations on it are
/// compiled once. Each operation of every mechanism then needs a call through a pointer, which
/// takes a nanosecond natively and no simulated time.
pub(super) trait AnyMap: Sync {
    /// How many trees there are.
    fn trees(&self) -> usize;

    /// A handle for a thread, which has `held` intervals at a time. With `reuse` it inserts the
    /// same ones again, otherwise new ones.
    fn handle(&self, held: usize, reuse: bool) -> Box<dyn Handle + '_>;

    /// Visits the intervals of a tree that have this number.
    fn overlaps(&self, tree: usize, number: u64, found: &mut (dyn FnMut(Interval) + Send));

    /// The number of intervals of a tree; `None` if the structure is no tree.
    fn count(&self, tree: usize) -> Option<usize>;

    /// Does what has waited for this many ticks.
    fn tend(&self, tree: usize, ticks: u64);

    /// The most updates that were deferred at a time.
    fn put_off_max(&self) -> u64;

    /// Visits what the mechanism has counted.
    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64));
}

/// A thread's handle of a reverse map, for updates. When it is dropped, it removes its intervals.
pub(super) trait Handle {
    /// Inserts an interval, or removes its oldest one. It inserts `fresh`, unless it has an
    /// interval to reuse.
    fn update(&mut self, tree: usize, fresh: Interval);
}

impl<M: ReverseMap> AnyMap for M {
    fn trees(&self) -> usize {
        ReverseMap::trees(self)
    }

    fn handle(&self, held: usize, reuse: bool) -> Box<dyn Handle + '_> {
        Box::new(Own { map: self, owned: VecDeque::with_capacity(held + 1), held, reuse })
    }

    fn overlaps(&self, tree: usize, number: u64, found: &mut (dyn FnMut(Interval) + Send)) {
        ReverseMap::overlaps(self, tree, number, number, found);
    }

    fn count(&self, tree: usize) -> Option<usize> {
        let mut count = 0;
        ReverseMap::overlaps(self, tree, 0, u64::MAX, &mut |_| count += 1);
        Some(count)
    }

    fn tend(&self, tree: usize, ticks: u64) {
        ReverseMap::tend(self, tree, ticks);
    }

    fn put_off_max(&self) -> u64 {
        ReverseMap::put_off_max(self)
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        ReverseMap::statistics(self, visit);
    }
}

/// The intervals of a thread, oldest first.
struct Own<'a, M: ReverseMap + 'a> {
    map: &'a M,
    owned: VecDeque<Owned<M::Absent<'a>, M::Present<'a>>>,
    held: usize,
    reuse: bool,
}

/// An interval of a thread.
enum Owned<A, P> {
    Absent(A),
    Present(P),
}

impl<M: ReverseMap> Handle for Own<'_, M> {
    fn update(&mut self, tree: usize, fresh: Interval) {
        let Self { map, owned, held, reuse } = self;
        if owned.len() < *held {
            owned.push_back(Owned::Present(map.insert(map.interval(tree, fresh))));
            return;
        }
        match owned.pop_front() {
            Some(Owned::Absent(absent)) => owned.push_back(Owned::Present(map.insert(absent))),
            Some(Owned::Present(present)) if *reuse => {
                owned.push_back(Owned::Absent(map.remove(present)));
            }
            // Removed, and gone.
            oldest => drop(oldest),
        }
    }
}

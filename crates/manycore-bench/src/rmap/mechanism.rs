//! The reverse maps that take part, by name, in either build of the library.

use std::collections::VecDeque;

use manycore_traits::{Interval, ReverseMap};

use super::load::Shape;
use super::pile::Piles;

/// A reverse map whose mechanism is not known, so that what is done with one is compiled once. A call through a pointer then
/// stands before every operation of every mechanism, which takes a nanosecond natively and no simulated time.
pub(super) trait AnyMap: Sync {
    /// How many trees there are.
    fn trees(&self) -> usize;

    /// Access for a thread, which has so many intervals at a time; and again the same, or fresh ones.
    fn handle(&self, held: usize, reuse: bool) -> Box<dyn Handle + '_>;

    /// Visits the intervals of a tree that have this number.
    fn overlaps(&self, tree: usize, number: u64, found: &mut (dyn FnMut(Interval) + Send));

    /// How many intervals a tree has; none if it is no tree.
    fn count(&self, tree: usize) -> Option<usize>;

    /// Does what has waited for so many ticks.
    fn tend(&self, tree: usize, ticks: u64);

    /// The most updates that were put off at a time.
    fn put_off_max(&self) -> u64;

    /// Visits what the mechanism has counted.
    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64));
}

/// What a thread updates a reverse map with. Dropped, it removes its intervals.
pub(super) trait Handle {
    /// Inserts an interval, or removes its oldest. What it inserts is this one, unless it has one that is to be used again.
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

/// The mechanism with a lock of this name.
const LOCK: &str = "lock:";

/// The reverse maps of one build of the library.
macro_rules! library {
    ($library:ident) => {
        use $library::collections::interval::LockedTrees;
        use $library::lock::{self, PlainLock};

        use super::super::load::Shape;
        use super::super::pile::Piles;
        use super::{AnyMap, LOCK};

        super::super::pile::piles!($library);

        /// So many trees, or what there is instead, by the mechanism of this name; `None` if there is none.
        pub(in crate::rmap) fn make(
            name: &str,
            shape: Shape,
            trees: usize,
        ) -> Option<Box<dyn AnyMap>> {
            match (name.strip_prefix(LOCK), shape) {
                (Some(lock), _) => by_lock(lock, shape, trees),
                (None, Shape::Trees) => by_other(name, trees),
                (None, Shape::Queue) => pile::queues(name, trees),
                (None, Shape::Stack) => pile::stacks(name, trees),
            }
        }

        /// The names of all mechanisms, those that are locks last.
        pub(in crate::rmap) fn names(shape: Shape) -> Vec<String> {
            let others = match shape {
                Shape::Trees => OTHERS,
                Shape::Queue => pile::QUEUES,
                Shape::Stack => pile::STACKS,
            };
            let locks = LOCKS.iter().map(|lock| format!("{LOCK}{lock}"));
            others.iter().map(|name| (*name).to_owned()).chain(locks).collect()
        }

        $library::for_each_reverse_map!(others);
        $library::for_each_lock!(locks);
    };
}

macro_rules! others {
    ($($name:literal, $trees:ident => $map:expr;)*) => {
        const OTHERS: &[&str] = &[$($name),*];

        fn by_other(name: &str, trees: usize) -> Option<Box<dyn AnyMap>> {
            $(if name == $name {
                let $trees = trees;
                return Some(Box::new($map));
            })*
            None
        }
    };
}

macro_rules! locks {
    ($($lock:ident),* $(,)?) => {
        const LOCKS: &[&str] = &[$(<lock::$lock as PlainLock>::INFO.name),*];

        fn by_lock(name: &str, shape: Shape, trees: usize) -> Option<Box<dyn AnyMap>> {
            $(if name == <lock::$lock as PlainLock>::INFO.name {
                return Some(match shape {
                    Shape::Trees => Box::new(LockedTrees::<lock::$lock>::new(trees)),
                    Shape::Queue => Box::new(Piles::<pile::Locked<lock::$lock, true>>::new(trees)),
                    Shape::Stack => Box::new(Piles::<pile::Locked<lock::$lock, false>>::new(trees)),
                });
            })*
            None
        }
    };
}

/// Those of the native library.
pub(super) mod native {
    library!(manycore);
}

/// A peer of the ordered queue, natively.
const PEER: &str = "seg-queue";

/// So many trees, or what there is instead, natively; `None` if no mechanism has the name.
pub(super) fn make_here(name: &str, shape: Shape, trees: usize) -> Option<Box<dyn AnyMap>> {
    if (name, shape) == (PEER, Shape::Queue) {
        return Some(Box::new(Piles::<crossbeam_queue::SegQueue<Interval>>::new(trees)));
    }
    native::make(name, shape, trees)
}

/// The names of all mechanisms, natively.
pub(super) fn names_here(shape: Shape) -> Vec<String> {
    let peer = (shape == Shape::Queue).then(|| PEER.to_owned());
    peer.into_iter().chain(native::names(shape)).collect()
}

/// Those of the library that is built for the simulator.
pub(super) mod simulated {
    library!(manycore_simulated);
}

//! The reverse maps that take part, by name, in either build of the library.

use manycore_traits::Interval;

use super::any_map::AnyMap;
use super::bag_workload::Bags;
use super::load::Shape;

/// The mechanism with a lock of this name.
const LOCK: &str = "lock:";

/// The reverse maps of one build of the library.
macro_rules! library {
    ($library:ident) => {
        use $library::collections::interval::LockedTrees;
        use $library::lock::{self, PlainLock};

        use super::super::any_map::AnyMap;
        use super::super::bag_workload::Bags;
        use super::super::load::Shape;
        use super::LOCK;

        super::super::bag_workload::bags!($library);

        /// `trees` trees, or their replacements, by the mechanism of this name; `None` if there is
        /// none.
        pub(in crate::rmap) fn make(
            name: &str,
            shape: Shape,
            trees: usize,
        ) -> Option<Box<dyn AnyMap>> {
            match (name.strip_prefix(LOCK), shape) {
                (Some(lock), _) => by_lock(lock, shape, trees),
                (None, Shape::Trees) => by_other(name, trees),
                (None, Shape::Queue) => bag::queues(name, trees),
                (None, Shape::Stack) => bag::stacks(name, trees),
            }
        }

        /// The names of all mechanisms. Locks come last.
        pub(in crate::rmap) fn names(shape: Shape) -> Vec<String> {
            let others = match shape {
                Shape::Trees => OTHERS,
                Shape::Queue => bag::QUEUES,
                Shape::Stack => bag::STACKS,
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
                    Shape::Queue => Box::new(Bags::<bag::Locked<lock::$lock, true>>::new(trees)),
                    Shape::Stack => Box::new(Bags::<bag::Locked<lock::$lock, false>>::new(trees)),
                });
            })*
            None
        }
    };
}

/// The mechanisms of the native library.
pub(super) mod native {
    library!(manycore);
}

/// A peer of the ordered queue, natively.
const PEER: &str = "seg-queue";

/// Makes `trees` trees, or their replacements, natively; `None` if no mechanism has the name.
pub(super) fn make_here(name: &str, shape: Shape, trees: usize) -> Option<Box<dyn AnyMap>> {
    if (name, shape) == (PEER, Shape::Queue) {
        return Some(Box::new(Bags::<crossbeam_queue::SegQueue<Interval>>::new(trees)));
    }
    native::make(name, shape, trees)
}

/// The names of all mechanisms, natively.
pub(super) fn names_here(shape: Shape) -> Vec<String> {
    let peer = (shape == Shape::Queue).then(|| PEER.to_owned());
    peer.into_iter().chain(native::names(shape)).collect()
}

/// The mechanisms of the library that is built for the simulator.
pub(super) mod simulated {
    library!(manycore_simulated);
}

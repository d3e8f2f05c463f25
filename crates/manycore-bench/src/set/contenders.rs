//! The sets that compete: all of manycore's, in either build of the library.

use manycore_traits::{ConcurrentSet, SetHandle};

use super::task::Task;

/// A set with any mechanism, so that the benchmark's code is compiled once. Each operation of each
/// mechanism then begins with a call through a pointer, which takes a nanosecond natively and no
/// simulated time.
pub trait AnySet: Send + Sync {
    /// The calling thread's handle.
    fn handle(&self) -> Box<dyn SetHandle<u64> + '_>;

    /// Calls `visit` with each of the mechanism's counters.
    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64));
}

impl<S: ConcurrentSet<u64> + Send> AnySet for S {
    fn handle(&self) -> Box<dyn SetHandle<u64> + '_> {
        Box::new(ConcurrentSet::handle(self))
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        ConcurrentSet::statistics(self, visit);
    }
}

/// The structures to choose from.
pub(crate) const STRUCTURES: [&str; 4] = ["list", "hash", "bst", UNLOCKED];

/// The structure that has no form for one thread, so that no lock can protect it.
const UNLOCKED: &str = "btree";

/// The prefix of mechanisms that are locks.
const LOCK: &str = "lock:";

macro_rules! mechanisms {
    ($($name:ident, $structure:literal, $sync:literal, $sizes:ident => $make:expr;)*) => {
        /// Structures and mechanisms, without the locks.
        const MECHANISMS: &[(&str, &str)] = &[$(($structure, $sync)),*];

        fn by_mechanism(task: &Task) -> Option<Box<dyn AnySet>> {
            $(if (task.structure.as_str(), task.sync.as_str()) == ($structure, $sync) {
                let $sizes = sizes(task);
                return Some(Box::new($make));
            })*
            None
        }
    };
}

macro_rules! locks {
    ($($lock:ident),* $(,)?) => {
        const LOCKS: &[&str] = &[$(<lock::$lock as PlainLock>::INFO.name),*];

        fn by_lock(name: &str, task: &Task) -> Option<Box<dyn AnySet>> {
            $(if name == <lock::$lock as PlainLock>::INFO.name {
                return under::<lock::$lock>(task);
            })*
            None
        }
    };
}

/// The sets of one build of the library.
macro_rules! library {
    ($library:ident) => {
        use $library::collections::Sizes;
        use $library::collections::hash::LockedTable;
        use $library::collections::list::LockedList;
        use $library::collections::tree::LockedTree;
        use $library::lock::{self, PlainLock};

        use super::{AnySet, LOCK, Task, UNLOCKED};

        fn sizes(task: &Task) -> Sizes {
            Sizes { keys: task.keys.initial as usize, buckets: task.keys.buckets as usize }
        }

        fn under<L: PlainLock + 'static>(task: &Task) -> Option<Box<dyn AnySet>> {
            match task.structure.as_str() {
                "list" => Some(Box::new(LockedList::<u64, (), L>::default())),
                "hash" => Some(Box::new(LockedTable::<u64, (), L>::new(sizes(task).buckets))),
                "bst" => Some(Box::new(LockedTree::<u64, (), L>::default())),
                _ => None,
            }
        }

        /// Makes an empty set for the task; `None` if there is no such structure or mechanism.
        pub(crate) fn make(task: &Task) -> Option<Box<dyn AnySet>> {
            match task.sync.strip_prefix(LOCK) {
                Some(lock) => by_lock(lock, task),
                None => by_mechanism(task),
            }
        }

        /// The names of a structure's mechanisms. Locks come last.
        pub(crate) fn names(structure: &str) -> Vec<String> {
            let of_structure = MECHANISMS.iter().filter(|(known, _)| *known == structure);
            let mechanisms = of_structure.map(|(_, sync)| (*sync).to_owned());
            let locks = LOCKS.iter().filter(|_| structure != UNLOCKED);
            mechanisms.chain(locks.map(|lock| format!("{LOCK}{lock}"))).collect()
        }

        $library::for_each_set!(mechanisms);
        $library::for_each_lock!(locks);
    };
}

/// The sets of the native library.
pub(crate) mod native {
    library!(manycore);
}

/// The sets of the library that is built for the simulator.
pub(crate) mod simulated {
    library!(manycore_simulated);
}

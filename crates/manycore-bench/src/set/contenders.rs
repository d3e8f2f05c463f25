//! The sets that compete: all of manycore's, in either build of the library.

use manycore_traits::ConcurrentSet;

use super::task::Task;

/// What to do with a set, once its type is known.
pub(crate) trait SetVisitor {
    /// What comes of it.
    type Output;

    /// Does it.
    fn visit<S: ConcurrentSet<u64> + Send + 'static>(self, set: S) -> Self::Output;
}

/// What there is to choose from.
pub(crate) const STRUCTURES: [&str; 3] = ["list", "hash", "bst"];

/// What names of mechanisms that are locks begin with.
const LOCK: &str = "lock:";

macro_rules! mechanisms {
    ($($name:ident, $structure:literal, $sync:literal, $sizes:ident => $make:expr;)*) => {
        /// Structures and mechanisms, without the locks.
        const MECHANISMS: &[(&str, &str)] = &[$(($structure, $sync)),*];

        fn with_mechanism<V: SetVisitor>(task: &Task, visitor: V) -> Option<V::Output> {
            $(if (task.structure.as_str(), task.sync.as_str()) == ($structure, $sync) {
                let $sizes = sizes(task);
                return Some(visitor.visit($make));
            })*
            None
        }
    };
}

macro_rules! locks {
    ($($lock:ident),* $(,)?) => {
        const LOCKS: &[&str] = &[$(<lock::$lock as PlainLock>::INFO.name),*];

        fn with_lock<V: SetVisitor>(name: &str, task: &Task, visitor: V) -> Option<V::Output> {
            $(if name == <lock::$lock as PlainLock>::INFO.name {
                return under::<lock::$lock, V>(task, visitor);
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

        use super::{LOCK, SetVisitor, Task};

        fn sizes(task: &Task) -> Sizes {
            Sizes { keys: task.initial as usize, buckets: task.buckets as usize }
        }

        fn under<L: PlainLock + 'static, V: SetVisitor>(
            task: &Task,
            visitor: V,
        ) -> Option<V::Output> {
            match task.structure.as_str() {
                "list" => Some(visitor.visit(LockedList::<u64, (), L>::default())),
                "hash" => Some(visitor.visit(LockedTable::<u64, (), L>::new(sizes(task).buckets))),
                "bst" => Some(visitor.visit(LockedTree::<u64, (), L>::default())),
                _ => None,
            }
        }

        /// Calls the visitor with an empty set for the task; `None` if there is no such structure or mechanism.
        pub(crate) fn with<V: SetVisitor>(task: &Task, visitor: V) -> Option<V::Output> {
            match task.sync.strip_prefix(LOCK) {
                Some(lock) => with_lock(lock, task, visitor),
                None => with_mechanism(task, visitor),
            }
        }

        /// The names of a structure's mechanisms, those that are locks last.
        pub(crate) fn names(structure: &str) -> Vec<String> {
            let of_structure = MECHANISMS.iter().filter(|(known, _)| *known == structure);
            let mechanisms = of_structure.map(|(_, sync)| (*sync).to_owned());
            mechanisms.chain(LOCKS.iter().map(|lock| format!("{LOCK}{lock}"))).collect()
        }

        $library::for_each_set!(mechanisms);
        $library::for_each_lock!(locks);
    };
}

/// Those of the native library.
pub(crate) mod native {
    library!(manycore);
}

/// Those of the library that is built for the simulator.
pub(crate) mod simulated {
    library!(manycore_simulated);
}

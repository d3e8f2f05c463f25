//! The reverse maps that take part, by name, in either build of the library.

use manycore_traits::ReverseMap;

/// What to do with a mechanism's type, once it is known.
pub(super) trait Visitor {
    /// What comes of it.
    type Output;

    /// Does it with what makes a map with so many trees.
    fn visit<M: ReverseMap + 'static>(self, new: impl Fn(usize) -> M) -> Self::Output;
}

/// The mechanism with a lock of this name.
const LOCK: &str = "lock:";

/// The reverse maps of one build of the library.
macro_rules! library {
    ($library:ident) => {
        use $library::collections::interval::LockedTrees;
        use $library::lock::{self, PlainLock};

        use super::{LOCK, Visitor};

        /// Calls the visitor with the mechanism of this name; `None` if there is none.
        pub(in crate::rmap) fn with<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            match name.strip_prefix(LOCK) {
                Some(lock) => with_lock(lock, visitor),
                None => with_other(name, visitor),
            }
        }

        /// The names of all mechanisms, those that are locks last.
        pub(in crate::rmap) fn names() -> Vec<String> {
            let locks = LOCKS.iter().map(|lock| format!("{LOCK}{lock}"));
            OTHERS.iter().map(|name| (*name).to_owned()).chain(locks).collect()
        }

        $library::for_each_reverse_map!(others);
        $library::for_each_lock!(locks);
    };
}

macro_rules! others {
    ($($name:literal, $trees:ident => $map:expr;)*) => {
        const OTHERS: &[&str] = &[$($name),*];

        fn with_other<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            $(if name == $name {
                return Some(visitor.visit(|$trees| $map));
            })*
            None
        }
    };
}

macro_rules! locks {
    ($($lock:ident),* $(,)?) => {
        const LOCKS: &[&str] = &[$(<lock::$lock as PlainLock>::INFO.name),*];

        fn with_lock<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            $(if name == <lock::$lock as PlainLock>::INFO.name {
                return Some(visitor.visit(LockedTrees::<lock::$lock>::new));
            })*
            None
        }
    };
}

/// Those of the native library.
pub(super) mod native {
    library!(manycore);
}

/// Those of the library that is built for the simulator.
pub(super) mod simulated {
    library!(manycore_simulated);
}

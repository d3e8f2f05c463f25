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

pub(super) mod native {
    use manycore::collections::interval::LockedTrees;
    use manycore::lock::{self, PlainLock};

    use super::{LOCK, Visitor};

    macro_rules! others {
        ($($name:literal, $trees:ident => $map:expr;)*) => {
            pub(in crate::rmap) const OTHERS: &[&str] = &[$($name),*];

            fn with_other<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, V> {
                $(if name == $name {
                    return Ok(visitor.visit(|$trees| $map));
                })*
                Err(visitor)
            }
        };
    }
    manycore::for_each_reverse_map!(others);

    macro_rules! locks {
        ($($lock:ident),* $(,)?) => {
            pub(in crate::rmap) const LOCKS: &[&str] = &[$(<lock::$lock as PlainLock>::INFO.name),*];

            /// Calls the visitor with the mechanism of this name; `None` if there is none.
            pub(in crate::rmap) fn with<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
                let visitor = match with_other(name, visitor) {
                    Ok(output) => return Some(output),
                    Err(visitor) => visitor,
                };
                let lock = name.strip_prefix(LOCK)?;
                $(if lock == <lock::$lock as PlainLock>::INFO.name {
                    return Some(visitor.visit(LockedTrees::<lock::$lock>::new));
                })*
                None
            }
        };
    }
    manycore::for_each_lock!(locks);
}

pub(super) mod simulated {
    use manycore_simulated::collections::interval::LockedTrees;
    use manycore_simulated::lock::{self, PlainLock};

    use super::{LOCK, Visitor};

    macro_rules! others {
        ($($name:literal, $trees:ident => $map:expr;)*) => {
            fn with_other<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, V> {
                $(if name == $name {
                    return Ok(visitor.visit(|$trees| $map));
                })*
                Err(visitor)
            }
        };
    }
    manycore_simulated::for_each_reverse_map!(others);

    macro_rules! locks {
        ($($lock:ident),* $(,)?) => {
            /// Calls the visitor with the mechanism of this name; `None` if there is none.
            pub(in crate::rmap) fn with<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
                let visitor = match with_other(name, visitor) {
                    Ok(output) => return Some(output),
                    Err(visitor) => visitor,
                };
                let lock = name.strip_prefix(LOCK)?;
                $(if lock == <lock::$lock as PlainLock>::INFO.name {
                    return Some(visitor.visit(LockedTrees::<lock::$lock>::new));
                })*
                None
            }
        };
    }
    manycore_simulated::for_each_lock!(locks);
}

/// The names of all mechanisms.
pub fn names() -> impl Iterator<Item = String> {
    let locks = native::LOCKS.iter().map(|lock| format!("{LOCK}{lock}"));
    native::OTHERS.iter().map(|name| (*name).to_owned()).chain(locks)
}

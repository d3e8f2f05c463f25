//! The same locks, built for the simulator.

use manycore_simulated::lock::{self, PlainLock};
use manycore_traits::RawRwLock;

use super::{DELEGATE, Native, NativeRw, Visitor, delegate};

delegate!(manycore_simulated);

macro_rules! simulated_locks {
    ($($lock:ident),* $(,)?) => {
        fn with_lock<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, V> {
            $(if name == <lock::$lock as PlainLock>::INFO.name {
                return Ok(visitor.visit::<Native<lock::$lock>>());
            })*
            if name == DELEGATE.name { Ok(visitor.visit::<FlatCombining>()) } else { Err(visitor) }
        }
    };
}
manycore_simulated::for_each_lock!(simulated_locks);

macro_rules! simulated_rw_locks {
    ($($lock:ident),* $(,)?) => {
        fn with_rw_lock<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            $(if name == <lock::$lock as RawRwLock>::INFO.name {
                return Some(visitor.visit::<NativeRw<lock::$lock>>());
            })*
            None
        }
    };
}
manycore_simulated::for_each_rw_lock!(simulated_rw_locks);

/// The reader-writer lock that `manycore run` puts into a program.
pub(crate) type UsualRw = NativeRw<lock::AdaptiveRw>;

/// Calls the visitor with the simulated lock of this name; `None` if there is no such lock.
pub(crate) fn with<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
    match with_lock(name, visitor) {
        Ok(output) => Some(output),
        Err(visitor) => with_rw_lock(name, visitor),
    }
}

/// The names of all simulated locks. For workloads with readers, they include manycore's
/// reader-writer locks.
pub(crate) fn names(shared: bool) -> impl Iterator<Item = &'static str> {
    let rw_locks = if shared { super::rw_locks() } else { &[] };
    super::locks().iter().chain(rw_locks).map(|info| info.name)
}

#[cfg(test)]
mod tests {
    use super::super::Contender;
    use super::*;

    struct IsThere;

    impl Visitor for IsThere {
        type Output = ();

        fn visit<C: Contender>(self) {}
    }

    #[test]
    fn every_lock_can_be_simulated() {
        for name in names(true) {
            assert_eq!(with(name, IsThere), Some(()), "{name}");
        }
        assert_eq!(with("glibc", IsThere), None);
    }
}

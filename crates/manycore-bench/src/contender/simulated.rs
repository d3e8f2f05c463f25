//! The same locks, built for the simulator.

use manycore_simulated::lock::{self, PlainLock, Preference};

use super::{Contender, Native, PHASE_RW, Visitor};

/// Manycore's reader-writer lock.
struct PhaseRw(lock::PhaseRw);

impl Contender for PhaseRw {
    fn new() -> Self {
        Self(lock::PhaseRw::new())
    }

    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        if !self.0.try_write() {
            self.0.write();
        }
        let result = section();
        // SAFETY: acquired above.
        unsafe { self.0.release_write() };
        result
    }

    fn shared<R>(&self, section: impl FnOnce() -> R) -> R {
        if !self.0.try_read(Preference::Phases) {
            self.0.read(Preference::Phases);
        }
        let result = section();
        // SAFETY: acquired above.
        unsafe { self.0.release_read() };
        result
    }
}

macro_rules! simulated_locks {
    ($($lock:ident),* $(,)?) => {
        fn with_lock<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, V> {
            $(if name == <lock::$lock as PlainLock>::INFO.name {
                return Ok(visitor.visit::<Native<lock::$lock>>());
            })*
            Err(visitor)
        }
    };
}
manycore_simulated::for_each_lock!(simulated_locks);

/// Calls the visitor with the simulated lock of this name; `None` if there is no such lock.
pub(crate) fn with<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
    match with_lock(name, visitor) {
        Ok(output) => Some(output),
        Err(visitor) => (name == PHASE_RW).then(|| visitor.visit::<PhaseRw>()),
    }
}

/// The names of all simulated locks; with readers, manycore's reader-writer lock is one of them.
pub(crate) fn names(shared: bool) -> impl Iterator<Item = &'static str> {
    let rw = shared.then_some(PHASE_RW);
    super::locks().iter().map(|info| info.name).chain(rw)
}

#[cfg(test)]
mod tests {
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

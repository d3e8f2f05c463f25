//! Locking and unlocking a lock that nobody else wants.

use std::time::Instant;

use crate::contender::Contender;

/// The name under which the instruction counter finds [`region`].
pub(crate) const REGION: &str = "manycore_bench_region";

/// Locks and unlocks so many times; returns the nanoseconds that one pair took.
///
/// The process must have a second thread: with a single one, glibc leaves the atomic instructions out.
pub fn time<C: Contender>(pairs: u32) -> f64 {
    let lock = C::new();
    // First calls bind symbols and make per-thread state.
    pass(&lock, 16);
    let start = Instant::now();
    region(&mut || pass(&lock, pairs));
    start.elapsed().as_nanos() as f64 / f64::from(pairs)
}

#[inline]
fn pass<C: Contender>(lock: &C, pairs: u32) {
    let lock = std::hint::black_box(lock);
    for _ in 0..pairs {
        lock.exclusive(|| std::hint::black_box(()));
    }
}

/// What the instruction counter counts: this call, and nothing of the process around it. Its symbol is not mangled, so
/// that the counter can be told its name.
#[inline(never)]
#[unsafe(export_name = "manycore_bench_region")]
fn region(run: &mut dyn FnMut()) {
    run();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::{BASE, Visitor, with};

    struct Time;

    impl Visitor for Time {
        type Output = f64;

        fn visit<C: Contender>(self) -> f64 {
            time::<C>(10_000)
        }
    }

    #[test]
    fn a_pair_takes_nanoseconds() {
        let ns = with(BASE, Time).unwrap();
        assert!((0.5..50_000.0).contains(&ns), "{ns}");
    }
}

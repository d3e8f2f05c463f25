//! Locking and unlocking a lock without contention.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::contender::{self, Contender, Visitor};
use crate::worker::{Executor, Order};

/// The order to lock and unlock this many times. The answer is the nanoseconds of one pair.
#[derive(Serialize, Deserialize)]
pub(super) struct Pairs(pub u32);

impl Order for Pairs {
    const NAME: &'static str = "pairs";
    type Answer = f64;

    fn time_max(&self) -> Duration {
        // A microsecond each is an upper bound even under an instruction counter.
        Duration::from_micros(u64::from(self.0))
    }
}

/// Times pairs with this lock, in a worker.
pub(crate) fn executor(lock: &str) -> Executor {
    let lock = lock.to_owned();
    Executor::new(move |pairs: Pairs| {
        contender::with(&lock, pairs).ok_or_else(|| format!("there is no lock `{lock}`"))
    })
}

impl Visitor for Pairs {
    type Output = f64;

    fn visit<C: Contender>(self) -> f64 {
        time::<C>(self.0)
    }
}

/// The name under which the instruction counter finds [`region`].
pub(super) const REGION: &str = "manycore_bench_region";

/// Locks and unlocks this many times; returns the nanoseconds that one pair took.
///
/// The process must have a second thread: with a single one, glibc omits the atomic instructions.
fn time<C: Contender>(pairs: u32) -> f64 {
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

/// The function whose instructions are counted: this call, and nothing around it. Its symbol is not
/// mangled, so that the counter can find it by name.
#[inline(never)]
#[unsafe(export_name = "manycore_bench_region")]
fn region(run: &mut dyn FnMut()) {
    run();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::{BASE, with};

    #[test]
    fn a_pair_takes_nanoseconds() {
        let ns = with(BASE, Pairs(10_000)).unwrap();
        assert!((0.5..50_000.0).contains(&ns), "{ns}");
    }
}

//! Every lock under the loom model checker: `RUSTFLAGS="--cfg loom" cargo test -p manycore --test loom --release`.
//!
//! Each weakened ordering of an algorithm is named in its source (`order!`), and listed here: with that ordering
//! relaxed, the lock's model must fail.
#![cfg(loom)]

use std::process::Command;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use manycore::lock::{self, InlineLock};

/// A number that only a lock protects.
struct Counter<L> {
    lock: L,
    value: UnsafeCell<u32>,
}

// SAFETY: the value is only touched with the lock held.
unsafe impl<L: Sync> Sync for Counter<L> {}

impl<L: InlineLock> Counter<L> {
    fn increment(&self) {
        self.lock.acquire();
        // SAFETY: the lock is held, so that this is the only access; loom fails the test if it is not.
        self.value.with_mut(|v| unsafe { *v += 1 });
        // SAFETY: acquired above.
        unsafe { self.lock.release() };
    }
}

/// Some threads increment under the lock: exclusion, visibility, and no lost wake-up (a deadlock fails the model).
fn excludes<L: InlineLock + 'static>(threads: usize, rounds: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let counter = Arc::new(Counter { lock: L::new(), value: UnsafeCell::new(0) });
        let workers: Vec<_> = (1..threads)
            .map(|_| {
                let counter = counter.clone();
                loom::thread::spawn(move || (0..rounds).for_each(|_| counter.increment()))
            })
            .collect();
        (0..rounds).for_each(|_| counter.increment());
        workers.into_iter().for_each(|w| w.join().unwrap());
        counter.lock.acquire();
        // SAFETY: the lock is held.
        assert_eq!(counter.value.with(|v| unsafe { *v }), (threads * rounds) as u32);
    });
}

macro_rules! models {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case)]
            fn $lock() {
                excludes::<lock::$lock>(2, 2);
                excludes::<lock::$lock>(3, 1);
            }
        )*
    };
}
manycore::for_each_lock!(models);

/// Mutation and the test that has to fail with it.
const MUTATIONS: &[(&str, &str)] =
    &[("futex-cas-acquire", "Futex"), ("futex-swap-acquire", "Futex"), ("futex-release", "Futex")];

#[test]
fn every_mutation_is_caught() {
    let this = std::env::current_exe().unwrap();
    let missed: Vec<_> = MUTATIONS
        .iter()
        .filter(|(mutation, test)| {
            let run = Command::new(&this)
                .args(["--exact", test])
                .env("MANYCORE_MUTATION", mutation)
                .output()
                .unwrap();
            run.status.success()
        })
        .collect();
    assert!(missed.is_empty(), "the models do not notice {missed:?}");
}

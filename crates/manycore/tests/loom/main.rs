//! Every algorithm under the loom model checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p manycore --test loom --release`.
//!
//! Each weakened ordering of an algorithm is named in its source (`order!`), and listed in
//! `mutations.rs`: with that ordering relaxed, the algorithm's model must fail.
#![cfg(loom)]

mod adaptive_rw;
mod atomic;
mod by_preference;
mod caught;
mod flat_combining;
mod growing;
mod hash_map;
mod horizon;
mod kernel_log;
mod ldu;
mod lists;
mod mutations;
mod mutex;
mod mvrlu;
mod oplog;
mod ordered;
mod phase_rw;
mod plain_hash_map;
mod reclaim;
mod rlu;
mod rw;
mod sessions;
mod settled;
mod take_all;
mod treiber;
mod wait_queue;

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use manycore::sync::Deadline;

/// A deadline. In the model's clock, every deadline passes immediately.
const SOON: Option<Deadline> = Some(Deadline { wall: false, seconds: 0, nanoseconds: 0 });

/// Checks all executions with at most `preemptions` switches between threads that could have gone
/// on.
fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);

    builder.check(model);
}

/// Checks the first N of those executions, of a model that has too many.
fn check_first(executions: usize, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_permutations = Some(executions);

    builder.check(model);
}

/// A value whose memory outlives it, so that an access after its end is an error of the model and
/// not of the test.
struct Mortal<T>(UnsafeCell<ManuallyDrop<T>>);

// SAFETY: `end` has the model check that no other thread uses the value meanwhile.
unsafe impl<T: Sync> Sync for Mortal<T> {}

impl<T> Mortal<T> {
    fn new(value: T) -> Arc<Self> {
        Arc::new(Self(ManuallyDrop::new(value).into()))
    }

    /// Destroys the value. The model fails if any thread uses it at the same time or later.
    fn end(&self) {
        // SAFETY: called once, and no thread has the value now: the model checks that.
        unsafe { ManuallyDrop::drop(&mut *self.0.get()) };
    }
}

impl<T> std::ops::Deref for Mortal<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: no thread has it mutably before `end`.
        unsafe { &*self.0.get() }
    }
}

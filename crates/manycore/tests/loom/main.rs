//! Every algorithm under the loom model checker: `RUSTFLAGS="--cfg loom" cargo test -p manycore --test loom --release`.
//!
//! Each weakened ordering of an algorithm is named in its source (`order!`), and listed in `mutations.rs`: with that
//! ordering relaxed, the algorithm's model must fail.
#![cfg(loom)]

mod mutations;
mod mutex;
mod wait_queue;

/// Checks all executions with at most `preemptions` switches between threads that could have gone on.
fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

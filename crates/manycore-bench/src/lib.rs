//! Workloads, and a way of measuring that a noisy machine cannot mislead.
//!
//! | module | what is in it |
//! |---|---|
//! | [`paired`] | the measuring protocol: interleaved rounds, ratios with an interval, a verdict |
//! | [`lock`] | threads that contend for locks: throughput, waits, fairness |
//! | [`set`] | threads that use a set, by several mechanisms: throughput, latency, memory |
//! | [`uncontended`] | what a lock costs when nobody else wants it: nanoseconds and instructions |
//! | [`grid`] | what the project promises about its locks, measured and judged |
//! | [`goals`] | what it wants of its sets and reverse maps, measured and judged |
//! | [`contender`] | the locks that take part: manycore's, glibc's, `parking_lot`'s, the standard library's |
//! | [`host`] | what the machine underneath costs: the constants of a machine model |
//! | [`worker`] | the process in which a lock is measured |
//! | [`kernel_load`] | processes and threads that load the kernel's locks |
//! | [`conversation`] | two processes that talk over TCP: bandwidth and latency |
//! | [`rmap`] | threads that update trees of intervals which few read, natively and simulated |
//! | [`simulated`] | the same workloads on simulated machines |
//! | [`slice`](mod@slice), [`mix`], [`work`] | one short run, what its threads do, and the work that takes its time |
//!
//! # A first comparison
//!
//! ```
//! use manycore_bench::paired::{Better, Protocol, Schedule, Verdict};
//!
//! // Two candidates and a base line (number 0) run once a round, in an order that changes from round to round.
//! let mut random = fastrand::Rng::with_seed(42);
//! let mut run = |candidate: usize| [1.0, 0.8, 1.0][candidate] * (1.0 + 0.01 * random.f64());
//! let mut times = vec![Vec::new(); 3];
//! for round in Schedule::new(3, 42).take(31) {
//!     round.into_iter().for_each(|candidate| times[candidate].push(run(candidate)));
//! }
//! let results = Protocol::new(Better::Lower).compare_all(&times[0], &[&times[1], &times[2]])?;
//! assert_eq!(results[0].verdict, Verdict::Faster);
//! assert_eq!(results[1].verdict, Verdict::NoDifference);
//! # Ok::<(), manycore_bench::paired::Unusable>(())
//! ```

mod campaign;
pub mod contender;
pub mod conversation;
mod counts;
pub mod cpus;
mod disturbance;
mod failure;
pub mod goals;
pub mod grid;
mod heading;
mod heap;
pub mod host;
pub mod kernel_load;
pub mod lock;
pub mod mix;
mod open;
pub mod paired;
mod pairs;
mod popularity;
mod progress;
pub mod rmap;
pub mod set;
pub mod simulated;
pub mod slice;
pub mod uncontended;
mod waits;
pub mod work;
pub mod worker;

pub use failure::Failure;
pub use waits::Waits;

//! Workloads, and how they are measured: natively, by the protocol of [`manycore_measure::paired`],
//! and simulated.
//!
//! | module | what is in it |
//! |---|---|
//! | [`lock`] | threads that contend for locks: throughput, waits, fairness |
//! | [`set`] | threads that use a set, by several mechanisms: throughput, latency, memory |
//! | [`index`] | threads that use an index as YCSB does: throughput, latency, scans |
//! | [`uncontended`] | what a lock costs without contention: nanoseconds and instructions |
//! | [`grid`] | what the project promises about its locks, measured and judged |
//! | [`goals`] | what it wants of its sets, indexes and reverse maps, measured and judged |
//! | [`contender`] | locks of manycore, glibc, `parking_lot` and the standard library |
//! | [`host`] | what the machine underneath costs: the constants of a machine model |
//! | `line_accesses` | what cores do with one line at the same moment, natively and simulated |
//! | `registry` | the workloads that there are, a line each; how one is added |
//! | `workload`, [`front`] | what a workload is; what the commands of all have in common |
//! | `campaign` | the protocol applied to slices in worker processes |
//! | [`worker`] | the process in which something is measured |
//! | [`kernel_load`] | processes and threads that load the kernel's locks |
//! | [`rmap`] | threads that update trees of intervals which few read, natively and simulated |
//! | [`db`], [`kernel`], [`syscall`], [`many`], [`accuracy`], [`predict`] | only simulated |
//! | `mariadb`, `syscalls` | programs of others, under each lock and with their calls moved |
//! | [`machines`] | models of machines, shown and measured |
//! | [`simulated`] | jobs on simulated machines, and the processes that run them |
//! | `structure` | what is measured of sets and indexes alike, and how it is shown |
//! | `threads` | threads that operate on something that they share, natively |
//! | [`slice`](mod@slice), [`mix`], [`work`] | one short run, what its threads do, and how long |
//!
//! # A first example
//!
//! ```
//! use manycore_bench::set::Keys;
//!
//! // What threads do is drawn by a seed: the same keys natively and on a simulated machine.
//! let keys = Keys::of(500);
//! assert_eq!(keys.first().len(), 500);
//! assert_eq!(keys.first(), Keys::of(500).first());
//! ```

pub mod accuracy;
mod campaign;
pub mod contender;
mod counts;
pub mod cpus;
pub mod db;
mod disturbance;
mod failure;
mod footprint;
pub mod front;
pub mod fs;
pub mod goals;
pub mod grid;
mod heading;
pub mod host;
pub mod index;
pub mod kernel;
pub mod kernel_load;
mod line_accesses;
pub mod lock;
pub mod machines;
pub mod many;
mod mariadb;
mod metrics;
pub mod mix;
mod popularity;
pub mod predict;
mod progress;
mod registry;
pub mod rmap;
mod run_records;
mod scorecard;
pub mod set;
pub mod simulated;
pub mod slice;
mod structure;
pub mod syscall;
mod syscalls;
mod threads;
pub mod txn;
pub mod uncontended;
mod unjudged;
mod wait_pool;
mod waits;
pub mod work;
pub mod worker;
mod workload;

pub use failure::Failure;
pub use registry::{Bench, Sim, serve_simulator, serve_worker};
pub use run_records::RunRecords;
pub use scorecard::Scorecard;
pub use waits::Waits;

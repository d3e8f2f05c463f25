//! Mutual exclusion: a file per algorithm.
//!
//! Every lock implements [`RawLock`](crate::RawLock). Those that fit into a pthread mutex also have an
//! [`InlineLock`] form, which is what `manycore run` puts into an unmodified program and what `lock_api` uses.
//! [`for_each_lock`](crate::for_each_lock) is the registry: a lock that is named there appears in `manycore locks`,
//! in `run`, in the benchmarks and in every test suite.
//!
//! Beside them is [`WaitQueue`], waiting for a condition with any of them.

mod futex;
mod inline;
mod registry;
mod wait_queue;

pub use futex::Futex;
pub use inline::InlineLock;
pub use wait_queue::{WaitQueue, Waiter};

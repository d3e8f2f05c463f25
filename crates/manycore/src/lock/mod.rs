//! Mutual exclusion: a file per algorithm.
//!
//! Every lock implements [`RawLock`](crate::RawLock). Those that fit into a pthread mutex also have an
//! [`InlineLock`] form, which is what `manycore run` puts into an unmodified program and what `lock_api` uses.
//! [`for_each_lock`](crate::for_each_lock) is the registry: a lock that is named there appears in `manycore locks`,
//! in `run`, in the benchmarks and in every test suite.
//!
//! Beside them are [`WaitQueue`], waiting for a condition with any of them, and [`PhaseRw`], a reader-writer lock.

mod adaptive;
mod double_delay;
mod exponential;
mod futex;
mod half_spin;
mod hybrid;
mod inline;
mod innodb;
mod mcs;
mod mcs_bypass;
mod phase_rw;
mod proportional;
mod registry;
mod sleep;
mod spin_then_block;
mod tas;
mod ticket;
mod ttas;
mod wait_queue;
mod waiter;

pub use adaptive::Adaptive;
pub use double_delay::{DoubleDelay, DoubleDelayPatience};
pub use exponential::{Exponential, ExponentialPatience};
pub use futex::Futex;
pub use half_spin::{HalfSpin, HalfSpinPatience};
pub use hybrid::{Hybrid, HybridPatience};
pub use inline::InlineLock;
pub use innodb::{Innodb, InnodbPatience};
pub use mcs::{Mcs, McsNode};
pub use mcs_bypass::McsBypass;
pub use phase_rw::{PhaseRw, Preference};
pub use proportional::{Proportional, ProportionalPatience};
pub use sleep::{Sleep, SleepPatience};
pub use spin_then_block::{Patience, SpinThenBlock};
pub use tas::Tas;
pub use ticket::Ticket;
pub use ttas::Ttas;
pub use wait_queue::WaitQueue;
pub use waiter::Waiter;

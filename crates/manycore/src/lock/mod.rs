//! Mutual exclusion: a file per algorithm.
//!
//! Every lock implements [`RawLock`](crate::RawLock), and [`PlainLock`], which `lock_api` uses.
//! Locks that fit into a pthread mutex are [`InlineLock`]s: `manycore run` can put them into an
//! unmodified program; the others are library-only. [`for_each_lock`](crate::for_each_lock) is the
//! registry: a lock in this list is in `manycore locks`, in `run`, in the benchmarks and in every
//! test suite.
//!
//! Reader-writer locks implement [`RawRwLock`](crate::RawRwLock), and have a registry of their own,
//! [`for_each_rw_lock`](crate::for_each_rw_lock). `manycore run` puts the first of them,
//! [`AdaptiveRw`], into a program.
//!
//! With the feature `lock_api`, which is on by default, all of them contain the data that they
//! protect. `Mutex` and `RwLock` are the default locks; the others have the same methods:
//!
//! ```
//! # #[cfg(feature = "lock_api")] {
//! use manycore::lock::{Mcs, Mutex, RwLock};
//! use manycore::lock_api;
//!
//! let total = Mutex::new(0);
//! *total.lock() += 1;
//!
//! let numbers = RwLock::new(vec![1, 2]);
//! numbers.write().push(3);
//! let (one, other) = (numbers.read(), numbers.read());
//! assert_eq!(one.len() + other.len(), 6);
//! assert!(numbers.try_write().is_none());
//!
//! let in_order = lock_api::Mutex::<Mcs, _>::new(0);
//! *in_order.lock() += 1;
//! # }
//! ```
//!
//! [`WaitQueue`] is for waiting for a condition, with any mutex. With the feature `lock_api`, there
//! is also a `Condvar` for the guards of mutexes.

mod adaptive;
mod adaptive_rw;
mod anderson;
mod bravo;
mod c_bo_mcs;
mod clh;
mod cna;
mod cohort;
#[cfg(all(feature = "lock_api", not(loom)))]
mod condvar;
#[cfg(all(feature = "lock_api", not(loom)))]
mod defaults;
mod depth_gated;
mod exponential;
mod futex;
mod gate;
mod guarded;
mod held;
mod held_queue;
mod hmcs;
mod hybrid;
mod innodb;
mod link;
mod malthusian;
mod mcs;
mod mcs_bypass;
mod numbers;
mod parking_lot;
mod per_cpu_rw;
mod phase_rw;
mod plain;
mod preference;
mod proportional;
mod queue;
mod registry;
mod rust_std;
mod shfl;
mod side_door;
mod sleep;
mod spin_then_block;
mod tas;
mod ticket;
mod top_word;
mod ttas;
mod wait_queue;
mod waiter;

pub use adaptive::Adaptive;
pub use adaptive_rw::AdaptiveRw;
pub use anderson::Anderson;
pub use bravo::Bravo;
pub use c_bo_mcs::CBoMcs;
pub use clh::Clh;
pub use cna::Cna;
#[cfg(all(feature = "lock_api", not(loom)))]
pub use condvar::Condvar;
#[cfg(all(feature = "lock_api", not(loom)))]
pub use defaults::{
    MappedMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, RwLock,
    RwLockReadGuard, RwLockWriteGuard,
};
pub use depth_gated::DepthGated;
pub use exponential::{Exponential, ExponentialPatience};
pub use futex::Futex;
#[doc(hidden)]
pub use gate::Gate;
pub(crate) use guarded::Guarded;
pub(crate) use held::Held;
pub use hmcs::Hmcs;
pub use hybrid::{Hybrid, HybridPatience};
pub use innodb::{
    DoubleDelay, DoubleDelayPatience, HalfSpin, HalfSpinPatience, Innodb, InnodbPatience,
};
pub use malthusian::Malthusian;
pub use mcs::{Mcs, McsNode};
pub use mcs_bypass::McsBypass;
pub use parking_lot::ParkingLot;
pub use per_cpu_rw::PerCpuRw;
pub use phase_rw::PhaseRw;
pub use plain::{INLINE_SIZE, InlineLock, PlainLock};
pub use preference::Preference;
pub use proportional::{Proportional, ProportionalPatience};
pub use rust_std::RustStd;
pub use shfl::Shfl;
pub use sleep::{Sleep, SleepPatience};
pub use spin_then_block::{Patience, SpinThenBlock};
pub use tas::Tas;
pub use ticket::Ticket;
pub use ttas::Ttas;
pub use wait_queue::WaitQueue;
pub use waiter::Waiter;

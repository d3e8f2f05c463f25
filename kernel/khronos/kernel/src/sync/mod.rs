//! Locks and waiting, over the raw locks of `manycore`; threads and the scheduler, which waiting is
//! made of.
#![allow(unsafe_code)]

pub mod bare;
pub mod futex;
pub mod once;
pub mod order;
pub mod parted;
pub mod percpu;
pub mod pin;
pub mod sched;
pub mod selftest;
pub mod shelf;
pub mod sleep;
pub mod spin;
pub mod thread;
pub mod user;
pub mod wait;

//! Locks and waiting, over the raw locks of `manycore`.
#![allow(unsafe_code)]

pub mod bare;
pub mod futex;
pub mod once;
pub mod order;
pub mod percpu;
pub mod pin;
pub mod sleep;
pub mod spin;
pub mod wait;

//! Observations of the kernel while it runs, and after it has stopped.

pub mod bench;
pub mod counters;
pub mod provoke;
pub mod sampler;
pub mod selftest;

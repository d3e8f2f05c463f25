//! The library's locks on simulated machines: they exclude there, and behave as on real machines.

mod exclusion;
mod native;
mod repeats;
mod rw;
mod shapes;
mod workload;

//! The library's locks on simulated machines: that they work there, and behave as on real ones.

mod exclusion;
mod native;
mod repeats;
mod rw;
mod shapes;
mod workload;

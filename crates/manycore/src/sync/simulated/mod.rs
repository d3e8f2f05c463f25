//! The simulator: every operation is charged to the simulated CPU, and then done.
//!
//! The charge returns at the moment of virtual time at which the operation takes effect, and the
//! operation follows at once: no other simulated thread runs in between.

pub mod atomic;
#[path = "../fences.rs"]
pub mod barrier;
pub mod cell;
pub mod clock;
pub mod cpu;
pub mod futex;
pub(super) mod global;
pub mod hint;
mod mutation;
pub mod node;
pub mod process;
pub(super) mod table;
pub mod thread;

pub use mutation::is_mutated;

pub(super) fn has_passed(deadline: &super::Deadline) -> bool {
    manycore_sim::backend::nanoseconds() >= clock::moment(deadline)
}

/// What the monotonic clock says.
pub(super) fn monotonic() -> core::time::Duration {
    core::time::Duration::from_nanos(manycore_sim::backend::nanoseconds())
}

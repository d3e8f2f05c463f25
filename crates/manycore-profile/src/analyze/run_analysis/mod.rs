//! The whole run, from the counts of single processes: over time, by thread, the waits between
//! threads, and the orders in which locks were taken.

pub(super) mod blocking;
pub(super) mod convoys;
pub(super) mod neighbours;
pub(super) mod orders;
pub mod threads;
pub mod timeline;

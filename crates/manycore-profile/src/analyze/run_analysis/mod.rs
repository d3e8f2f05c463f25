//! What the counts of single processes say of the run: over time, by thread, who waited for whom,
//! in which order locks were taken.

pub(super) mod blocking;
pub(super) mod convoys;
pub(super) mod neighbours;
pub(super) mod orders;
pub mod threads;
pub mod timeline;

//! What is drawn of a profile, and what is read back.

mod diff;
mod forms;
pub mod made_up;
mod pprof;
mod reading;

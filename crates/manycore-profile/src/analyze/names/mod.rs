//! What an address in a process is called, and which call of a stack tells what a lock is for.

pub mod files;
pub(super) mod listed;
pub(super) mod modules;
pub(super) mod symbols;
pub(super) mod wrapper_frames;

//! The name of an address in a process, and the call of a stack that shows a lock's purpose.

pub mod files;
pub(super) mod listed;
pub(super) mod modules;
pub(super) mod symbols;
pub(super) mod wrapper_frames;

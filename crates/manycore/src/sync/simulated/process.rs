//! Processes.

/// A simulated process does not fork.
pub fn generation() -> u32 {
    0
}

//! Numbers that no other store has.

use std::hash::{BuildHasher, RandomState};

/// A number that the operating system has chosen. The standard library asks it: other generators
/// leave memory behind for the thread that uses them, which checkers of C programs find.
pub fn random() -> u64 {
    RandomState::new().hash_one(0)
}

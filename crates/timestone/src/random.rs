//! Numbers that no other store has.

use std::hash::{BuildHasher, RandomState};

/// A number that the operating system has chosen. The standard library asks it: other generators
/// leave memory behind for the thread that uses them, which checkers of C programs find.
///
/// In a simulation, which has to repeat a schedule exactly, the number comes from a generator that
/// the program seeds.
pub fn random() -> u64 {
    if cfg!(feature = "sim") { fastrand::u64(..) } else { RandomState::new().hash_one(0) }
}

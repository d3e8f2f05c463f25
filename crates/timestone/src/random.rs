//! Numbers that no other store has.

use std::hash::{BuildHasher, RandomState};

/// A number chosen by the operating system, obtained through the standard library. Other generators
/// leave memory behind for each thread that uses them, which checkers of C programs report.
///
/// In a simulation, which has to repeat a schedule exactly, the number comes from a generator that
/// the program seeds.
pub fn random() -> u64 {
    if cfg!(feature = "sim") { fastrand::u64(..) } else { RandomState::new().hash_one(0) }
}

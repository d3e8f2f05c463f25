//! What threads do with a file system.

use serde::{Deserialize, Serialize};

/// A file system and what is done with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The mechanism.
    pub sync: String,
    /// What an operation does, by name.
    pub workload: String,
    /// Chains of a directory.
    pub chains: usize,
    /// How many threads.
    pub threads: u32,
    /// What everything is drawn by.
    pub seed: u64,
}

impl Task {
    /// What a thread draws its numbers by.
    pub(super) fn random(&self, thread: u32) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed.wrapping_mul(1 << 32) + u64::from(thread))
    }
}

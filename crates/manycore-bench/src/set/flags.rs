//! The flags of `bench set` and `sim set` for the sets and the threads' operations.

use crate::set::{self, Keys, Popularity, TaskGrid};
use clap::Args;

/// The set, and what threads do with it.
#[derive(Args, Debug)]
pub struct SetOptions {
    /// The structure: list, hash, bst or btree
    #[arg(long, value_name = "NAME", default_value = "hash")]
    structure: String,
    /// Mechanisms; the first is the base line [default: lock:adaptive and all that are no locks]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    sync: Vec<String>,
    /// Numbers of threads
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,8")]
    threads: Vec<u32>,
    /// Shares of operations that insert or remove a key, in percent
    #[arg(long, value_name = "PERCENT,..", value_delimiter = ',', default_value = "2,20,80")]
    update: Vec<f64>,
    /// Keys at the start
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    initial: u64,
    /// Keys are below [default: twice --initial]
    #[arg(long, value_name = "N")]
    range: Option<u64>,
    /// Buckets of a hash table [default: a tenth of --initial]
    #[arg(long, value_name = "N")]
    buckets: Option<u64>,
    /// The k-th most popular key is k^S times as rare as the first [default: all alike]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    zipf: Option<f64>,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl SetOptions {
    /// The workload in the benchmark's terms.
    pub fn workload(&self) -> TaskGrid {
        let usual = || set::usual_syncs(&self.structure);
        let keys = Keys::of(self.initial);
        TaskGrid {
            structure: self.structure.clone(),
            syncs: if self.sync.is_empty() { usual() } else { self.sync.clone() },
            threads: self.threads.clone(),
            updates: self.update.clone(),
            keys: Keys {
                range: self.range.unwrap_or(keys.range),
                buckets: self.buckets.unwrap_or(keys.buckets),
                popularity: self.zipf.map_or(Popularity::Uniform, Popularity::Zipf),
                seed: self.seed,
                ..keys
            },
        }
    }
}

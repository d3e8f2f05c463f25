//! Indexes and the operations on them, as given by the flags of `bench index` and `sim index`.

use clap::Args;

use super::any_index::Contender;
use super::data::{KeyKind, ValueSize};
use super::grid::TaskGrid;
use super::task::{Mix, Records};
use crate::popularity::Popularity;

/// What threads do with which index.
#[derive(Args, Debug)]
pub struct IndexOptions {
    /// The structure: btree, art, hash or bst
    #[arg(long, value_name = "NAME", default_value = "btree")]
    structure: String,
    /// Mechanisms; the first is the base line [default: all that can do the workloads]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    sync: Vec<String>,
    /// Workloads: ycsb-a to ycsb-f, or upsert-PERCENT
    #[arg(
        long,
        value_name = "NAME,..",
        value_delimiter = ',',
        default_value = "ycsb-a,ycsb-b,ycsb-c"
    )]
    workload: Vec<Mix>,
    /// Numbers of threads
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,8")]
    threads: Vec<u32>,
    /// Records at the start
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    initial: u64,
    /// Buckets of a hash table that does not grow [default: as many as --initial]
    #[arg(long, value_name = "N")]
    buckets: Option<u64>,
    /// The k-th most popular record is k^S times as rare as the first; 0 for all alike
    #[arg(long, value_name = "S", default_value_t = 0.99, allow_negative_numbers = true)]
    zipf: f64,
    /// What keys are
    #[arg(long, value_enum, value_name = "KIND", default_value = "u64")]
    key: KeyKind,
    /// Bytes of a value
    #[arg(long, value_enum, value_name = "BYTES", default_value = "8")]
    value: ValueSize,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl IndexOptions {
    /// As the benchmark knows it, which has these contenders.
    pub fn workload(&self, contenders: &'static [Contender]) -> TaskGrid {
        let popularity = match self.zipf {
            0.0 => Popularity::Uniform,
            exponent => Popularity::Zipf(exponent),
        };
        let grid = TaskGrid {
            structure: self.structure.clone(),
            syncs: self.sync.clone(),
            mixes: self.workload.clone(),
            threads: self.threads.clone(),
            records: Records {
                initial: self.initial,
                buckets: self.buckets.unwrap_or(self.initial),
                popularity,
                key: self.key,
                value: self.value,
                seed: self.seed,
            },
        };
        if self.sync.is_empty() { grid.with_all(contenders) } else { grid }
    }
}

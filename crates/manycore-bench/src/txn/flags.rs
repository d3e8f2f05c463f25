//! Databases and the operations on them, as given by the flags of `bench txn` and `sim txn`.

use clap::Args;

use super::database::{Contender, names};
use super::grid::TaskGrid;
use super::task::{Mix, Size};
use crate::popularity::Popularity;

/// What threads do with which database.
#[derive(Args, Debug)]
pub struct TransactionOptions {
    /// Workloads: ycsb16, tpcc
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = "ycsb16,tpcc")]
    workload: Vec<Mix>,
    /// Mechanisms; the first is the base line [default: all]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    sync: Vec<String>,
    /// Numbers of threads
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,8")]
    threads: Vec<u32>,
    /// Records of ycsb16
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    initial: u64,
    /// Share of the requests of ycsb16 that write, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 50.0, allow_negative_numbers = true)]
    update: f64,
    /// The k-th most popular record is k^S times as rare as the first; 0 for all alike
    #[arg(long, value_name = "S", default_value_t = 0.6, allow_negative_numbers = true)]
    zipf: f64,
    /// Warehouses of tpcc
    #[arg(long, value_name = "N", default_value_t = 8)]
    warehouses: u64,
    /// Items that a warehouse has in stock; TPC-C has 100000
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    items: u64,
    /// Customers of a district; TPC-C has 3000
    #[arg(long, value_name = "N", default_value_t = 100)]
    customers: u64,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl TransactionOptions {
    /// As the benchmark knows it, which has these mechanisms.
    pub fn workload(&self, contenders: &'static [Contender]) -> TaskGrid {
        let popularity = match self.zipf {
            0.0 => Popularity::Uniform,
            exponent => Popularity::Zipf(exponent),
        };
        TaskGrid {
            syncs: if self.sync.is_empty() { names(contenders) } else { self.sync.clone() },
            mixes: self.workload.clone(),
            threads: self.threads.clone(),
            size: Size {
                records: self.initial,
                warehouses: self.warehouses,
                items: self.items,
                customers: self.customers,
            },
            update: self.update,
            popularity,
            seed: self.seed,
        }
    }
}

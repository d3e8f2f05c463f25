//! File systems and the operations on them, as given by the flags of `bench fs` and `sim fs`.

use clap::Args;

use super::grid::TaskGrid;
use super::own;

/// What threads do with which file system.
#[derive(Args, Debug)]
pub struct FileSystemOptions {
    /// Workloads: see below
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = "mwcm,mwrm,mrpm")]
    workload: Vec<String>,
    /// Mechanisms; the first is the base line [default: all]
    #[arg(long, value_name = "A,B,..", value_delimiter = ',')]
    sync: Vec<String>,
    /// Numbers of threads
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,8")]
    threads: Vec<u32>,
    /// Chains of a directory, a power of two
    #[arg(long, value_name = "N", default_value_t = 64)]
    chains: usize,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl FileSystemOptions {
    /// As the benchmark knows it.
    pub fn workload(&self) -> TaskGrid {
        TaskGrid {
            syncs: if self.sync.is_empty() { own::syncs() } else { self.sync.clone() },
            workloads: self.workload.clone(),
            threads: self.threads.clone(),
            chains: self.chains,
            seed: self.seed,
        }
    }
}

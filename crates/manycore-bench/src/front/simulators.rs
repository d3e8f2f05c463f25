//! The processes that simulate, by the flags that all simulated workloads have.

use std::num::NonZero;
use std::path::PathBuf;

use crate::simulated::{Cache, SimulatorPool};
use crate::worker::Command;
use clap::Args;

use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::Terminal;

/// How simulations are run. These options do not change results.
#[derive(Args, Debug)]
pub struct SimulatorOptions {
    /// Simulations at a time [default: as many as CPUs]
    #[arg(long, value_name = "N")]
    workers: Option<NonZero<usize>>,
    /// Neither use results of earlier runs nor keep the results of this one
    #[arg(long)]
    no_cache: bool,
    /// Keep results in this directory, which others may use at the same time [default: the user's
    /// cache]
    #[arg(long, value_name = "DIR", conflicts_with = "no_cache")]
    cache: Option<PathBuf>,
}

/// The other options of every simulated workload: its seed, its machines, and its progress reports.
#[derive(Args, Debug)]
pub struct VariationOptions {
    /// Vary the unknown properties of the machine, and show the range of results: 18 simulations
    /// each
    #[arg(long)]
    pub sweep: bool,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl SimulatorOptions {
    /// The processes, which are this executable.
    pub fn start(&self, terminal: &Terminal) -> Result<SimulatorPool> {
        let worker = Command::this_executable(["sim", "worker"])?;
        let cache = match (&self.cache, self.no_cache) {
            (_, true) => None,
            (Some(root), _) => Some(Cache::below(root, &worker.program).map_err(|error| {
                Failure::failed(format!("cannot read '{}': {error}", worker.program.display()))
            })?),
            (None, _) => Cache::of_user(&worker.program).unwrap_or_else(|error| {
                terminal.note(format_args!("cannot keep results: {error}"));
                None
            }),
        };
        Ok(SimulatorPool::new(worker, self.workers, cache, terminal.shows_progress()))
    }
}

/// Reports problems of the cache.
pub fn say_troubles(pool: &SimulatorPool, terminal: &Terminal) {
    pool.cache.iter().flat_map(Cache::troubles).for_each(|trouble| terminal.note(trouble));
}

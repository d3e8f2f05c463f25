//! Who simulates, as the flags of every simulated workload say.

use std::num::NonZero;

use clap::Args;
use manycore_bench::simulated::{Cache, Crew};
use manycore_bench::worker::Command;

use crate::bench::failure;
use crate::failure::Result;
use crate::terminal::Terminal;

/// How simulations are run. None of it changes a result.
#[derive(Args, Debug)]
pub struct CrewOptions {
    /// Simulations at a time [default: as many as CPUs]
    #[arg(long, value_name = "N")]
    workers: Option<NonZero<usize>>,
    /// Neither use results of earlier runs nor keep those of this one
    #[arg(long)]
    no_cache: bool,
}

impl CrewOptions {
    /// The processes, which are this executable.
    pub fn crew(&self, terminal: &Terminal) -> Result<Crew> {
        let worker = Command::this_executable(["sim", "worker"]).map_err(failure)?;
        let cache = match self.no_cache {
            true => None,
            false => Cache::of_user(&worker.program).unwrap_or_else(|error| {
                terminal.note(format_args!("cannot keep results: {error}"));
                None
            }),
        };
        let progress = terminal.shows_progress();
        Ok(Crew { worker, workers: self.workers, cache, progress })
    }
}

/// Says what was the matter with the cache, if anything was.
pub fn say_troubles(crew: &Crew, terminal: &Terminal) {
    crew.cache.iter().flat_map(Cache::troubles).for_each(|trouble| terminal.note(trouble));
}

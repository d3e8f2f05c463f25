//! Who simulates, as the flags of every simulated workload say.

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;
use manycore_bench::simulated::{Cache, Crew};
use manycore_bench::worker::Command;

use crate::bench::failure;
use crate::failure::{Failure, Result};
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
    /// Keep results in this directory, which others may use at the same time [default: the user's cache]
    #[arg(long, value_name = "DIR", conflicts_with = "no_cache")]
    cache: Option<PathBuf>,
}

impl CrewOptions {
    /// The processes, which are this executable.
    pub fn crew(&self, terminal: &Terminal) -> Result<Crew> {
        let worker = Command::this_executable(["sim", "worker"]).map_err(failure)?;
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
        Ok(Crew::new(worker, self.workers, cache, terminal.shows_progress()))
    }
}

/// Says what was the matter with the cache, if anything was.
pub fn say_troubles(crew: &Crew, terminal: &Terminal) {
    crew.cache.iter().flat_map(Cache::troubles).for_each(|trouble| terminal.note(trouble));
}

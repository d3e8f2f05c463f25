//! What the processes of a program have left behind about their locks.

use std::fs;
use std::path::Path;

use manycore_profile::analyze::process::ProcessStats;
use manycore_profile::analyze::process::stats_file::StatsFile;

use manycore_launch::failure::{Failure, Result};

/// Reads all statistics files of a directory. A process that was killed before it had any is not among them.
pub fn read(directory: &Path) -> Result<Vec<ProcessStats>> {
    let unreadable = |error| {
        Failure::failed(format!("cannot read statistics in '{}': {error}", directory.display()))
    };
    let mut processes = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        if let Ok(Some(file)) = StatsFile::open(&entry.map_err(unreadable)?.path()) {
            processes.push(ProcessStats::read(file.get()));
        }
    }
    Ok(processes)
}

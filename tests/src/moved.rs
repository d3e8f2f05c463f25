//! Which calls a program moved, by its own statistics.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use manycore_profile::analyze::offloaded_calls::Tally;
use manycore_profile::analyze::process::StatsFile;
use manycore_profile::clock::Clock;
use manycore_profile::profile::MovedCalls;
use manycore_stats::syscalls::Mapping;
use tempfile::TempDir;

use crate::preload::Beneath;

/// A directory for the statistics of system calls.
#[derive(Debug)]
pub struct Counted {
    directory: TempDir,
    clock: Clock,
}

impl Counted {
    /// An empty directory. Processes may write to it that have given up their privileges.
    ///
    /// # Panics
    ///
    /// If none can be made.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(directory.path(), Permissions::from_mode(0o1733)).expect("it is ours");
        Self { directory, clock: Clock::start() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The same beneath a program, whose processes count here.
    pub fn beneath(&self, beneath: &Beneath) -> Beneath {
        beneath.clone().variable("MANYCORE_SYSCALLS_STATS", self.path())
    }

    /// What all processes have counted until now.
    ///
    /// # Panics
    ///
    /// If a file cannot be read.
    pub fn calls(&self) -> MovedCalls {
        let mut tally = Tally::default();
        for entry in fs::read_dir(self.path()).expect("it is ours") {
            let path = entry.expect("it is ours").path();
            let file = StatsFile::<Mapping>::open(&path);
            // An empty file comes from a process that was killed while it created the file.
            if let Some(file) = file.unwrap_or_else(|error| panic!("{error}")) {
                tally.add(file.get());
            }
        }
        tally.finish(&self.clock.rate())
    }
}

impl Default for Counted {
    fn default() -> Self {
        Self::new()
    }
}

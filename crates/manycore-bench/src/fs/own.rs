//! The file system, native and simulated, behind one interface.

use super::task::Task;

/// A file system, and what its threads do.
pub(super) trait FileSystem: Send + Sync {
    /// Creates the initial files, and calls `progress` after each name.
    fn fill(&self, progress: &mut dyn FnMut());

    /// A thread's access.
    fn worker(&self, thread: u32) -> Box<dyn Worker + '_>;

    /// Visits what the mechanism has counted.
    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64));

    /// Whether all links, names and parents agree; no thread has a worker.
    fn check(&self) -> Result<(), String>;
}

/// A thread that uses a file system.
pub(super) trait Worker {
    /// Does the next operation, by a random number.
    fn act(&mut self, random: u64);

    /// How often calls had to begin anew.
    fn retries(&self) -> u64;
}

/// Names of the mechanisms, the base line first.
pub(super) fn syncs() -> Vec<String> {
    khronos_fs::Sync::ALL.map(|sync| sync.name().to_owned()).to_vec()
}

/// Names of the workloads.
pub(super) fn workloads() -> Vec<&'static str> {
    khronos_workloads::Workload::ALL.iter().map(|workload| workload.name()).collect()
}

macro_rules! file_systems {
    ($(#[$meta:meta])* $name:ident, $fs:ident, $workloads:ident) => {
        $(#[$meta])*
        pub(super) mod $name {
            use $fs::{Options, Sync};
            use $workloads::{Stage, Workload};

            use super::{FileSystem, Task};

            /// One without anything in it.
            pub fn make(task: &Task) -> Result<Box<dyn FileSystem>, String> {
                let sync: Sync = task.sync.parse().map_err(|error| format!("{error}"))?;
                let workload = Workload::named(&task.workload)
                    .ok_or_else(|| format!("there is no workload {}", task.workload))?;
                let options = Options { chains: task.chains, ..Options::new(sync) };
                Ok(Box::new(Stage::new(workload, options, task.threads)))
            }

            impl FileSystem for Stage {
                fn fill(&self, progress: &mut dyn FnMut()) {
                    self.fill(progress);
                }

                fn worker(&self, thread: u32) -> Box<dyn super::Worker + '_> {
                    Box::new(self.worker(thread))
                }

                fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                    self.fs().statistics(visit);
                }

                fn check(&self) -> Result<(), String> {
                    self.check().map(|_| ())
                }
            }

            impl super::Worker for $workloads::Worker<'_> {
                fn act(&mut self, random: u64) {
                    self.act(random);
                }

                fn retries(&self) -> u64 {
                    let retries = self.retries();
                    retries.locked + retries.changed + retries.freed + retries.full
                }
            }
        }
    };
}

file_systems!(
    /// On this host.
    native, khronos_fs, khronos_workloads
);
file_systems!(
    /// In a simulated program.
    simulated, khronos_fs_simulated, khronos_workloads_simulated
);

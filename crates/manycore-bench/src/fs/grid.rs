//! The operations of threads on file systems: a grid of points, the same for every machine.

use super::own;
use super::task::Task;
use crate::failure::Failure;
use crate::slice::MOST_THREADS;

/// Mechanisms, and a grid of points.
#[derive(Clone, Debug)]
pub struct TaskGrid {
    /// Names of mechanisms; the first is the base line.
    pub syncs: Vec<String>,
    /// What operations do, by name.
    pub workloads: Vec<String>,
    /// Thread counts.
    pub threads: Vec<u32>,
    /// Chains of a directory.
    pub chains: usize,
    /// What everything is drawn by.
    pub seed: u64,
}

impl Default for TaskGrid {
    /// Threads make files in one directory, with all mechanisms, with 1 and 2 threads.
    fn default() -> Self {
        Self {
            syncs: own::syncs(),
            workloads: vec!["mwcm".to_owned()],
            threads: vec![1, 2],
            chains: 64,
            seed: 1,
        }
    }
}

impl TaskGrid {
    /// Whether it makes sense.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let (known_syncs, known_workloads) = (own::syncs(), own::workloads());
        let unknown_sync = self.syncs.iter().find(|sync| !known_syncs.contains(sync));
        let unknown = self.workloads.iter().find(|name| !known_workloads.contains(&name.as_str()));
        let strange_threads = self.threads.iter().find(|n| !(1..=MOST_THREADS).contains(*n));
        let faults = [
            self.syncs.is_empty().then(|| "no mechanisms: give some, such as mvrlu".into()),
            unknown_sync.map(|sync| {
                format!("no file system by `{sync}`: choose from {}", known_syncs.join(", "))
            }),
            unknown.map(|name| {
                format!("no workload `{name}`: choose from {}", known_workloads.join(", "))
            }),
            (self.threads.is_empty() || self.workloads.is_empty())
                .then(|| "nothing to measure: give a number of threads and a workload".into()),
            strange_threads
                .map(|n| format!("{n} threads: a thread count is between 1 and {MOST_THREADS}")),
            (!self.chains.is_power_of_two() || self.chains > 4096)
                .then(|| format!("{} chains: a power of two, and at most 4096", self.chains)),
        ];
        match faults.into_iter().flatten().next() {
            Some(fault) => Err(Failure::Usage(fault)),
            None => Ok(()),
        }
    }

    /// Each workload with each number of threads. The mechanism is the base line.
    pub(crate) fn points(&self) -> Vec<Task> {
        let point = |workload: &String, threads: &u32| Task {
            sync: self.syncs.first().cloned().unwrap_or_default(),
            workload: workload.clone(),
            chains: self.chains,
            threads: *threads,
            seed: self.seed,
        };
        let of_workload =
            |workload| self.threads.iter().map(move |threads| point(workload, threads));
        self.workloads.iter().flat_map(of_workload).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_questions_are_named() {
        let of = |grid: TaskGrid| grid.check().map_err(|failure| failure.to_string());
        let unknown = of(TaskGrid { syncs: vec!["mvrl".into()], ..TaskGrid::default() });
        assert!(unknown.unwrap_err().contains("dirlock, lock, rcu, rlu, mvrlu"));
        let unknown = of(TaskGrid { workloads: vec!["mwcx".into()], ..TaskGrid::default() });
        assert!(unknown.unwrap_err().contains("mwcl, mwcm"));
        assert!(of(TaskGrid { chains: 3, ..TaskGrid::default() }).is_err());
        assert!(of(TaskGrid { threads: vec![0], ..TaskGrid::default() }).is_err());
        assert_eq!(of(TaskGrid::default()), Ok(()));
    }
}

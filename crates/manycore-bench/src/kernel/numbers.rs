//! Every number that the model of the kernel needs, with where it comes from. One more is fitted:
//! the computation between two operations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Application;
use crate::failure::Failure;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Published.
    Cited,
    /// Derived from the code of the programs, the kernel or the C library.
    Derived,
    /// Measured natively, with one process.
    Measured,
    /// Plausible, and no more.
    Assumed,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cited => "cited",
            Self::Derived => "derived",
            Self::Measured => "measured",
            Self::Assumed => "assumed",
        })
    }
}

/// A number of the model.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Its name, as `--assume` and records have it.
    pub name: &'static str,
    /// What it is unless something else is said.
    pub usual: f64,
    /// Where that comes from.
    pub origin: Origin,
    /// What it is, and by what.
    pub what: &'static str,
}

const fn number(name: &'static str, usual: f64, origin: Origin, what: &'static str) -> Number {
    Number { name, usual, origin, what }
}

/// For both applications: the cost of giving up the CPU.
const SCHEDULING: [Number; 5] = [
    number(
        "sleeps_after_ns",
        10_000.0,
        Origin::Assumed,
        "a wait for a semaphore that is longer ends a turn on the CPU",
    ),
    number(
        "switch_ns",
        500.0,
        Origin::Assumed,
        "in the lock of a run queue to put a thread on it or take it off",
    ),
    number(
        "balances_after_ns",
        500_000.0,
        Origin::Derived,
        "a CPU looks for a thread on other queues if it is idle for longer: sysctl_sched_migration_cost",
    ),
    number(
        "balance_ns",
        2_000.0,
        Origin::Assumed,
        "in the lock of the busiest run queue, looking for a thread to take",
    ),
    number(
        "tick_ns",
        4_000_000.0,
        Origin::Derived,
        "so long all idle CPUs find the same queue the busiest: loads change with the tick, 250 a second",
    ),
];

const PROCESSES: [Number; 13] = [
    number(
        "mappings",
        14.0,
        Origin::Measured,
        "mappings with anonymous memory, of a C program with libm (smaps)",
    ),
    number(
        "roots",
        10.0,
        Origin::Derived,
        "their anon_vma: the constants and the data of each of four files share one, as neighbours of one file do",
    ),
    number(
        "file_mappings",
        14.0,
        Origin::Derived,
        "mappings of files: four of libc and libm each, three of the loader and the program each, as linkers made them until 2018",
    ),
    number("files", 4.0, Origin::Derived, "the program, libc, libm and the loader"),
    number(
        "alloc_ns",
        80.0,
        Origin::Assumed,
        "to allocate or free what links a mapping to an anon_vma, in the lock",
    ),
    number(
        "walks",
        0.0211,
        Origin::Cited,
        "reads of an anon_vma for each write: 569702 of 26990065 contentions, thesis, figure 3.5",
    ),
    number(
        "visit_ns",
        50.0,
        Origin::Assumed,
        "a walk reads the page table of one process; the lines that it reads are charged apart",
    ),
    number(
        "jobs",
        780.0 / 1_120.0,
        Origin::Derived,
        "jobs of AIM7's shared mix per process made: of 780 jobs, 10 make 100 each, 20 make 5, and 20 one",
    ),
    number(
        "log_ns",
        625.0,
        Origin::Measured,
        "a job's line is appended to the log on tmpfs that all users inherited: in f_pos_lock",
    ),
    number(
        "fork_ns",
        103_000.0,
        Origin::Measured,
        "a fork, an exit and a wait, spread over the mappings",
    ),
    number(
        "tasklist",
        3.0,
        Origin::Derived,
        "times that the list of processes is locked: fork, exit, and when the parent has waited",
    ),
    number("tasklist_ns", 200.0, Origin::Assumed, "each of them"),
    number(
        "wake_ups",
        2.0,
        Origin::Derived,
        "threads put on a run queue: the child, and the parent that waits for it",
    ),
];

const THREADS: [Number; 8] = [
    number("faults", 8.0, Origin::Assumed, "page faults of a request"),
    number("fault_ns", 1_690.0, Origin::Measured, "a page fault, with mmap_sem for reading"),
    number("pte_ns", 150.0, Origin::Assumed, "of that in a page-table lock"),
    number(
        "regions",
        65.0,
        Origin::Derived,
        "page tables in use: 6.4 GB of a heap of 24 are eden, a fiftieth of that is being filled, 2 MB have one lock",
    ),
    number(
        "faults_per_map",
        32.0,
        Origin::Derived,
        "page faults for each change of mappings: glibc's arenas grow by 128 KB",
    ),
    number(
        "map_ns",
        1_010.0,
        Origin::Measured,
        "such a change (mprotect), with mmap_sem for writing",
    ),
    number("wake_ups", 2.0, Origin::Assumed, "threads that a request puts on another run queue"),
    number(
        "limit",
        10.0,
        Origin::Derived,
        "times its own work that 99 % of requests may take: SPECjbb's first limit, 10 ms, for requests of 1 ms",
    ),
];

/// The numbers of an application.
pub fn table(application: Application) -> impl Iterator<Item = &'static Number> {
    let own: &[Number] = match application {
        Application::Processes => &PROCESSES,
        Application::Threads => &THREADS,
    };
    own.iter().chain(&SCHEDULING)
}

/// A value for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Numbers(BTreeMap<String, f64>);

impl Numbers {
    /// The usual ones.
    pub fn of(application: Application) -> Self {
        Self(table(application).map(|number| (number.name.to_owned(), number.usual)).collect())
    }

    /// Sets one. The error names those that there are.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), Failure> {
        let names = || self.0.keys().cloned().collect::<Vec<_>>().join(", ");
        match self.0.contains_key(name) {
            false => {
                Err(Failure::Usage(format!("the model has no `{name}`: choose from {}", names())))
            }
            true if !(0.0..=1e9).contains(&value) => {
                Err(Failure::Usage(format!("{name}={value}: it is between 0 and 1e9")))
            }
            true => {
                self.0.insert(name.to_owned(), value);
                Ok(())
            }
        }
    }

    /// The number of that name.
    pub fn get(&self, name: &str) -> f64 {
        self.0[name]
    }

    /// A number that counts something. It is at least 1.
    pub(super) fn count(&self, name: &str) -> usize {
        (self.get(name) as usize).clamp(1, 10_000)
    }

    /// All, by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

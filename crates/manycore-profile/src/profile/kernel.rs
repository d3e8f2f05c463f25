//! Contention inside of the kernel.

use serde::{Deserialize, Serialize};

use super::frame::Frame;
use super::lock::Times;

/// How the kernel's locks were watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelRun {
    /// By which means.
    pub source: Source,
    /// Whose waits were counted.
    pub scope: Scope,
    /// How long, in seconds.
    pub seconds: f64,
    /// Waits seen, all of them.
    pub events: u64,
    /// Waits that were seen and could not be kept.
    pub dropped: u64,
    /// What these means cannot show, one sentence each.
    pub limits: Vec<String>,
}

/// By which means the kernel was watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// BPF on the tracepoints `contention_begin` and `contention_end`, added up in the kernel.
    Bpf,
    /// The same tracepoints through perf events.
    Perf,
    /// The kernel's own statistics, `/proc/lock_stat`.
    LockStat,
}

/// Whose waits were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Every process'.
    System,
    /// The command's and its children's.
    Command,
    /// One process'.
    Process(u32),
}

/// A lock of the kernel, or all of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelLock {
    /// Its symbol or class if that is known, possibly from the waiting threads; otherwise the
    /// function that waits for it.
    pub name: String,
    /// Whether `name` is that of the lock, and not of a function.
    pub is_named: bool,
    /// `spinlock`, `rwlock`, `mutex`, `rwsem`, `rt-mutex`, `percpu-rwsem`, or `unknown`.
    pub kind: String,
    /// Whether a waiter keeps the CPU.
    pub spins: bool,
    /// The part of `wait.total_ns` in which a CPU was spinning; for a mutex, until the thread
    /// slept.
    pub spin_ns: u64,
    /// The number of locks that this row represents, as far as they could be distinguished.
    pub objects: u64,
    /// Waits, those of readers included.
    pub contended: u64,
    /// Those of readers.
    pub contended_shared: u64,
    /// How long they took.
    pub wait: Times,
    /// The waiting threads and the places of their waits, the longest first.
    pub stacks: Vec<KernelStack>,
}

impl KernelLock {
    /// Its key among the others: its name, or the function that waits for it.
    pub fn title(&self) -> String {
        if self.is_named { self.name.clone() } else { format!("in {}", self.name) }
    }
}

/// Waits of one task in one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelStack {
    /// The task's name.
    pub task: String,
    /// Its cgroup, where that was asked for.
    pub cgroup: Option<String>,
    /// Waits.
    pub waits: u64,
    /// Their time.
    pub wait_ns: u64,
    /// The calls in the kernel, innermost first.
    pub frames: Vec<Frame>,
    /// The calls of the lock's owner at that time, innermost first, where they are known.
    pub owner_frames: Vec<Frame>,
}

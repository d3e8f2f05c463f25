//! The model of a profile: what `manycore profile --json` writes.
//!
//! All durations end in `_ns` and are nanoseconds, except for the CPU's, which are seconds. A
//! reader ignores unknown fields; [`SCHEMA`] grows when a field changes its meaning.

use manycore_measure::Host;
use serde::{Deserialize, Serialize};

mod cpu;
mod frame;
mod kernel;
mod lock;
mod memory;
pub mod read;
mod run;
mod samples;
mod system_calls;

pub use cpu::Cpu;
pub use frame::Frame;
pub use kernel::{KernelLock, KernelRun, KernelStack, Scope, Source};
pub use lock::{Condition, Held, Lock, Origin, Site, Times, kind_name};
pub use memory::{CacheMisses, OtherNodes};
pub use run::{
    Blocking, Cause, Convoy, Cycle, Interval, Note, Order, Stack, Thread, Timeline, Waited,
};
pub use samples::{
    CpuSamples, Part, SampleSource, SampledFunction, SampledStack, SampledThread, Shares,
};
pub use system_calls::{FunctionCalls, Latency, MovedCalls, SYSTEM_CALLS_SCHEMA};

/// The version of the format.
pub const SCHEMA: u32 = 1;

/// What a program and its children did with locks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The machine on which the program ran; null in profiles older than this field.
    #[serde(default)]
    pub host: Option<Host>,
    /// How it ended.
    pub exit: Exit,
    /// The lock algorithm that it ran with.
    pub lock: String,
    /// From its start to its end, in seconds.
    pub wall: f64,
    /// How often values were measured that are not always counted or timed.
    pub sampling: Sampling,
    /// Where the time went.
    pub cpu: Cpu,
    /// The locks, the longest waits first: the sum over all processes.
    pub locks: Vec<Lock>,
    /// The condition variables, the longest waits first: the sum over all processes.
    pub conditions: Vec<Condition>,
    /// Each process that wrote statistics and used a lock or a condition variable.
    pub processes: Vec<Process>,
    /// Processes of the program that were seen but wrote no statistics.
    pub not_interposed: Vec<Outsider>,
    /// The places where threads waited, the longest waits first. At the end, without calls, the
    /// rest for each lock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
    /// Over time; null if it was not observed while it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// By thread, most waiting first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Thread>,
    /// Which thread made which other wait, the longest waits first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocking: Vec<Blocking>,
    /// Which lock was taken with which other one held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<Order>,
    /// Orders that contradict each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cycles: Vec<Cycle>,
    /// The longest queues, longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub convoys: Vec<Convoy>,
    /// What would help.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// How the kernel was observed; null if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelRun>,
    /// Locks of the kernel, most waited first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_locks: Vec<KernelLock>,
    /// Reads that missed all caches; null in profiles older than this field, and for programs that
    /// were not started here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_misses: Option<CacheMisses>,
    /// The activity of threads while they were on a CPU, from sampled stacks; null if no samples
    /// were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_samples: Option<CpuSamples>,
    /// The results for system calls; null if none were to be moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<MovedCalls>,
    /// What of all this matters, in a sentence.
    pub finding: String,
    /// What to do next: a command.
    pub next: Option<String>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// By itself, with this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

/// One in how many was measured, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// Acquisitions, for the time that the lock was held.
    pub hold_period: u32,
    /// One in this many waits has its CPU time and its place measured.
    pub spin_period: u32,
    /// Stacks of which only the innermost call was kept, because there were too many.
    #[serde(default)]
    pub cut: u64,
    /// Measured waits whose place was not kept, because there were too many places.
    #[serde(default)]
    pub dropped: u64,
    /// Measured waits whose holders were not recorded, because there were too many pairs.
    #[serde(default)]
    pub blocked_dropped: u64,
    /// How often a thread took two locks one after the other that are not in `orders`, because
    /// there were too many.
    #[serde(default)]
    pub orders_dropped: u64,
}

impl Sampling {
    /// The sampling of two processes together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            hold_period: self.hold_period.max(other.hold_period),
            spin_period: self.spin_period.max(other.spin_period),
            cut: self.cut + other.cut,
            dropped: self.dropped + other.dropped,
            blocked_dropped: self.blocked_dropped + other.blocked_dropped,
            orders_dropped: self.orders_dropped + other.orders_dropped,
        }
    }
}

/// A process of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent's number; for a forked process that of the nearest one that has statistics.
    pub parent: u32,
    /// The program's file.
    pub program: String,
    /// From the start of the command, in seconds.
    pub started: f64,
    /// How it came to its end.
    pub end: End,
    /// Threads that used locks.
    pub threads: u32,
    /// CPU time in waits for locks, in seconds, from samples.
    pub lock_spin: f64,
    /// Time off the CPU in waits for locks, in seconds.
    pub lock_wait: f64,
    /// The number of objects that are counted together because there were too many.
    pub unrecorded: u64,
    /// Its locks, most waited first.
    pub locks: Vec<Lock>,
    /// Its condition variables, most waited first.
    pub conditions: Vec<Condition>,
}

/// How a process came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// By `exit`, or the return of `main`.
    Exited,
    /// Without running exit handlers: killed, crashed, or by `_exit`.
    CutShort,
    /// It became another program.
    Replaced,
    /// It was still running when the profile was made.
    Running,
}

/// A process without statistics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outsider {
    /// Its number.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// The program's file, or its name if the file cannot be determined.
    pub program: String,
    /// Why the library is not in it.
    pub why: String,
}

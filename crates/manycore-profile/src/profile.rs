//! The model of a profile: what `manycore profile --json` writes.
//!
//! All durations end in `_ns` and are nanoseconds, but for the CPU's, which are seconds. A reader ignores fields that
//! it does not know; [`SCHEMA`] grows when a field changes its meaning.

use crate::moved::MovedCalls;
use crate::name;
use manycore_measure::Host;
use manycore_stats::Kind;
use serde::{Deserialize, Serialize};

mod kernel;
mod memory;
pub mod read;
mod samples;
mod whole;

pub use crate::symbols::Frame;
pub use kernel::{KernelLock, KernelRun, KernelStack, Scope, Source};
pub use memory::{CacheMisses, OtherNodes};
pub use samples::{
    CpuSamples, Part, SampleSource, SampledFunction, SampledStack, SampledThread, Shares,
};
pub use whole::{
    Blocking, Cause, Convoy, Cycle, Interval, Note, Order, Stack, Thread, Timeline, Waited,
};

/// The version of the format.
pub const SCHEMA: u32 = 1;

/// What a program and its children did with locks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The machine that it ran on; null in profiles of before that was noted.
    #[serde(default)]
    pub host: Option<Host>,
    /// How it ended.
    pub exit: Exit,
    /// The lock algorithm that it ran with.
    pub lock: String,
    /// From its start to its end, in seconds.
    pub wall: f64,
    /// How often what is not counted or timed always was measured.
    pub sampling: Sampling,
    /// Where the time went.
    pub cpu: Cpu,
    /// The locks, most waited first: the sum over all processes.
    pub locks: Vec<Lock>,
    /// The condition variables, most waited first: the sum over all processes.
    pub conditions: Vec<Condition>,
    /// Each process that wrote statistics and used a lock or a condition variable.
    pub processes: Vec<Process>,
    /// Processes of the program that were seen and wrote no statistics.
    pub not_interposed: Vec<Outsider>,
    /// The places where threads waited, most waited first; and last, without calls, what is left for each lock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
    /// Over time; null if nobody looked while it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// By thread, most waiting first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Thread>,
    /// Who kept whom waiting, most first.
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
    /// How the kernel was watched; null if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelRun>,
    /// Locks of the kernel, most waited first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_locks: Vec<KernelLock>,
    /// Reads that no cache had; null in profiles of before that was counted, and of what was not started here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_misses: Option<CacheMisses>,
    /// What threads did while they were on a CPU, from sampled stacks; null if that was not wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_samples: Option<CpuSamples>,
    /// What became of system calls; null if none were to be moved.
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
    /// Waits, for the CPU time that they took and the place that they were in.
    pub spin_period: u32,
    /// Stacks of which only the innermost call was kept, because there were too many.
    #[serde(default)]
    pub cut: u64,
    /// Waits that were measured and whose place was not kept, because there were too many places.
    #[serde(default)]
    pub dropped: u64,
    /// Waits that were measured and of which it was not kept who made them wait, because there were too many pairs.
    #[serde(default)]
    pub blocked_dropped: u64,
    /// How often a thread took two locks one after the other that are not in `orders`, because there were too many.
    #[serde(default)]
    pub orders_dropped: u64,
}

impl Sampling {
    /// Of two processes.
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

/// Where the time of all threads went, in seconds. The first three are CPU time and add up to all of it; the last is
/// time off the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// In the kernel, but for the waits.
    pub kernel: f64,
    /// In the program and its libraries, but for the waits.
    pub program: f64,
    /// In waits for locks: spinning, going to sleep and waking up. From samples.
    pub lock_spin: f64,
    /// Asleep, or ready but without a CPU, in waits for locks.
    pub lock_wait: f64,
    /// Ready but without a CPU, in waits for locks or not, as the kernel's scheduler counts it; null where nobody saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<f64>,
}

impl Cpu {
    /// Divides CPU time, `user` and `kernel`, so that no part contains another. `spin` is what of it went into waits for
    /// locks, as samples say, and `waited` how long those took.
    pub(crate) fn of(user: f64, kernel: f64, spin: f64, waited: f64) -> Self {
        let all = kernel + user;
        // The samples' sum may exceed what there was.
        let lock_spin = spin.min(all);
        // A wait's CPU time is not known by kernel and user: it is taken from both alike.
        let rest = if all > 0.0 { 1.0 - lock_spin / all } else { 1.0 };
        let lock_wait = (waited - spin).max(0.0);
        Self { kernel: kernel * rest, program: user * rest, lock_spin, lock_wait, ready: None }
    }
}

/// A lock, or all that were initialised, or else first used, at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    /// The variable that it is, `symbol+offset (module)`, or else where it was initialised or first used.
    pub name: String,
    /// The same without module and arguments.
    pub short: String,
    /// Which of these.
    pub origin: Origin,
    /// The file that the name is of.
    pub module: Option<String>,
    /// `mutex`, `recursive`, `errorcheck`, `adaptive`, `rwlock`, `spinlock`, `futex`.
    pub kind: String,
    /// Objects that this stands for.
    pub objects: u64,
    /// Acquisitions, all of them.
    pub acquired: u64,
    /// Those for writing, or of a lock that does not distinguish.
    pub exclusive: u64,
    /// Those for reading.
    pub shared: u64,
    /// Attempts that had to wait.
    pub contended: u64,
    /// Those of them for reading.
    pub contended_shared: u64,
    /// `contended` over all attempts: 0 to 1.
    pub contended_share: f64,
    /// Waits that ended by their deadline, without the lock.
    pub timeouts: u64,
    /// Acquisitions on another CPU than the one before.
    pub handoffs: u64,
    /// How long attempts waited; all of them are timed.
    pub wait: Times,
    /// How long it was held; one acquisition in `sampling.hold_period` is timed.
    pub hold: Times,
    /// How long in all, as those say that were timed; null if none was, and in profiles of before it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// The share of `wait.total_ns` that the most waited for object has, of those that were counted singly; of one
    /// object, 1.
    pub hottest_share: f64,
    /// The calls of the initialisation or first use, innermost first.
    pub frames: Vec<Frame>,
    /// Where threads waited for it most, from samples.
    pub waits_in: Vec<Site>,
}

impl Lock {
    /// Whether the program has made it of a mutex and a condition variable: acquisitions are not known then, and zero.
    pub fn is_made(&self) -> bool {
        self.kind == name::of_kind(Kind::Made)
    }

    /// Whether its acquisitions are counted.
    pub fn is_counted(&self) -> bool {
        !self.is_futex() && !self.is_made()
    }

    /// Whether it is a futex of the program's own, which the kernel saw: acquisitions and holds are not known then, and zero.
    pub fn is_futex(&self) -> bool {
        self.kind == name::of_kind(Kind::Futex)
    }

    /// What tells it from others, where there is little room: of a variable its name, of another lock `in` and the place
    /// where it is waited for, or else where it came to be.
    pub fn title(&self) -> String {
        let (what, name) = self.title_parts();
        format!("{what}{name}")
    }

    /// The same in its two parts, of which only the second may be shortened.
    pub fn title_parts(&self) -> (&'static str, &str) {
        match (self.origin, self.waits_in.first()) {
            (Origin::Variable | Origin::Rest, _) => ("", &self.short),
            (Origin::Futex, _) | (_, None) => ("in ", &self.short),
            (Origin::Initialised | Origin::FirstUse, Some(site)) => ("in ", &site.short),
        }
    }

    /// The share of its acquisitions that were on another CPU than the one before: 0 to 1.
    pub fn moved_share(&self) -> f64 {
        self.handoffs as f64 / self.acquired.max(1) as f64
    }

    /// How long it was held in all, in nanoseconds, worked out from those holds that were timed; none if none was.
    pub fn held_ns(&self) -> Option<f64> {
        if let Some(held) = self.held {
            return Some(held.total_ns as f64);
        }
        let Times { count, total_ns, .. } = self.hold;
        (count > 0 && !self.is_made())
            .then(|| total_ns as f64 / count as f64 * self.acquired as f64)
    }

    /// The share of so many seconds in which it was held, not above 1. None where the sum of its holds does not tell:
    /// readers hold it together, and several objects are held at the same time.
    pub fn held_share(&self, seconds: f64) -> Option<f64> {
        let held = self.held_ns().filter(|_| self.shared == 0 && self.objects == 1)?;
        Some((held / 1e9 / seconds.max(f64::MIN_POSITIVE)).min(1.0))
    }

    /// Between which shares it lies, nineteen times in twenty. None where nobody worked that out.
    pub fn held_between(&self, seconds: f64) -> Option<(f64, f64)> {
        self.held_share(seconds)?;
        let Held { low_ns, high_ns, .. } = self.held?;
        let share = |ns: u64| (ns as f64 / 1e9 / seconds.max(f64::MIN_POSITIVE)).min(1.0);
        Some((share(low_ns), share(high_ns)))
    }

    /// How long it can have been held in so many seconds by threads of which there were so many at a time: that is as long for each
    /// object, and for each reader of a lock that is taken for reading.
    fn possible_ns(&self, seconds: f64, threads: u32) -> u64 {
        let holders = if self.shared > 0 { f64::from(threads.max(1)) } else { 1.0 };
        (seconds * 1e9 * holders * self.objects.max(1) as f64) as u64
    }

    /// Takes nothing for true that is more than what is possible.
    pub(crate) fn bound_holds(&mut self, seconds: f64, threads: u32) {
        let most = self.possible_ns(seconds, threads);
        if let Some(Held { total_ns, low_ns, high_ns }) = &mut self.held {
            for ns in [total_ns, low_ns, high_ns] {
                *ns = (*ns).min(most);
            }
        }
    }
}

/// How long a lock was held in all, from samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// What the samples say, but no more than is possible.
    pub total_ns: u64,
    /// Nineteen times in twenty it is at least this.
    pub low_ns: u64,
    /// And at most this.
    pub high_ns: u64,
}

/// A place in the program where threads wait for a lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// The function that wants the lock: `function+offset (module)`, or with source file and line.
    pub name: String,
    /// The same without module and arguments.
    pub short: String,
    /// Sampled waits here.
    pub waits: u64,
    /// The share of the sampled time waited that was spent here: 0 to 1.
    pub share: f64,
    /// The innermost eight calls, innermost first.
    pub frames: Vec<Frame>,
}

/// Where a lock is, or came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// It lives in a variable of the program or of a library.
    Variable,
    /// It lives on the heap or a stack; the name is that of the place where it was initialised.
    Initialised,
    /// It lives on the heap or a stack and was never initialised by a call; the name is that of its first use.
    FirstUse,
    /// The program waited for it by a futex of its own, which the kernel saw; the name is that of the place where.
    Futex,
    /// It stands for all objects that found no record of their own.
    Rest,
}

/// A condition variable, or all that came to be at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// As of a [`Lock`].
    pub name: String,
    /// As of a [`Lock`].
    pub short: String,
    /// As of a [`Lock`].
    pub origin: Origin,
    /// As of a [`Lock`].
    pub module: Option<String>,
    /// Objects that this stands for.
    pub objects: u64,
    /// Waits.
    pub waits: u64,
    /// Those of them that ended by their deadline.
    pub timeouts: u64,
    /// How long they took, until the signal; the mutex is waited for afterwards.
    pub wait: Times,
    /// The calls of the initialisation or first use, innermost first.
    pub frames: Vec<Frame>,
    /// As of a [`Lock`].
    pub waits_in: Vec<Site>,
}

/// Durations. Those that are not known are null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How many were measured.
    pub count: u64,
    /// Their sum.
    pub total_ns: u64,
    /// Their mean.
    pub mean_ns: Option<u64>,
    /// The 99th percentile, to about 20 %.
    pub p99_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
}

/// A process of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent's; of a forked process the nearest one's that has statistics.
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
    /// Objects that are counted together because there were too many.
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
    /// The program's file, or its name if that cannot be seen.
    pub program: String,
    /// Why the library is not in it.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let times = Times { count: 2, total_ns: 30, ..Times::default() };
        let place = |name: &str| Site {
            name: name.to_owned(),
            short: name.to_owned(),
            waits: 1,
            share: 1.0,
            frames: Vec::new(),
        };
        Lock {
            name: "made (prog)".to_owned(),
            short: "made".to_owned(),
            origin: Origin::Initialised,
            module: None,
            kind: "mutex".to_owned(),
            objects: 1,
            acquired: 100,
            exclusive: 100,
            shared: 0,
            contended: 0,
            contended_shared: 0,
            contended_share: 0.0,
            timeouts: 0,
            handoffs: 25,
            wait: Times::default(),
            hold: times,
            held: None,
            hottest_share: 1.0,
            frames: Vec::new(),
            waits_in: vec![place("waited"), place("elsewhere")],
        }
    }

    #[test]
    fn a_title_is_the_place_that_tells_most() {
        let title = |origin, waits_in| Lock { origin, waits_in, ..lock() }.title();
        assert_eq!(title(Origin::Variable, lock().waits_in), "made");
        assert_eq!(title(Origin::Initialised, lock().waits_in), "in waited");
        assert_eq!(title(Origin::FirstUse, Vec::new()), "in made");
        assert_eq!(title(Origin::Futex, lock().waits_in), "in made");
    }

    #[test]
    fn holds_are_worked_out_from_those_that_were_timed() {
        let one = lock();
        assert_eq!((one.held_ns(), one.held_share(3e-6)), (Some(1500.0), Some(0.5)));
        assert_eq!((one.held_share(0.0), one.moved_share()), (Some(1.0), 0.25));
        assert_eq!(Lock { hold: Times::default(), ..lock() }.held_ns(), None);
        // A sum that does not tell.
        assert_eq!(Lock { shared: 1, ..lock() }.held_share(1.0), None);
        assert_eq!(Lock { objects: 2, ..lock() }.held_share(1.0), None);
    }
}

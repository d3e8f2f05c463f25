//! The run as a whole: events over time and by thread, the waits between threads, and the orders in
//! which locks were taken.

use serde::{Deserialize, Serialize};

use super::cpu::Cpu;
use super::frame::Frame;

/// A stack of calls in which threads waited for a lock, from samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// The lock: its place in `locks`.
    pub lock: usize,
    /// Sampled waits with this stack.
    pub waits: u64,
    /// The time waited with this stack, estimated from samples for all waits.
    pub wait_ns: u64,
    /// The calls, innermost first; none if this stands for all places that are not listed.
    pub frames: Vec<Frame>,
}

/// The run in intervals of one length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Length of an interval, in seconds.
    pub interval: f64,
    /// From the start to the end; the last one may be shorter.
    pub intervals: Vec<Interval>,
}

/// What happened in an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Where the time went.
    pub cpu: Cpu,
    /// The locks with the longest waits, at most 32.
    pub waits: Vec<Waited>,
}

/// Waits for one lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waited {
    /// The lock: its place in `locks`.
    pub lock: usize,
    /// Attempts that had to wait.
    pub contended: u64,
    /// How long.
    pub wait_ns: u64,
}

/// A thread of the program that used locks. Threads beyond the first few thousand are combined into
/// one, with the number 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// The name that it gave itself, or that it has from its creator.
    pub name: String,
    /// Where its time went.
    pub cpu: Cpu,
    /// Acquisitions of all locks.
    pub acquired: u64,
    /// The locks for which it waited longest, at most 32: a row of the matrix of threads and locks.
    pub waits: Vec<Waited>,
}

/// The waits between threads, from samples: threads at one place waited for a lock that threads at
/// another place held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blocking {
    /// The lock: its place in `locks`.
    pub lock: usize,
    /// Sampled waits.
    pub waits: u64,
    /// Their time, estimated from samples for all waits.
    pub wait_ns: u64,
    /// The calls that waited, innermost first.
    pub waiter: Vec<Frame>,
    /// The call by which the holder had taken the lock, with the functions inlined there, innermost
    /// first; empty if it is not known.
    pub holder: Vec<Frame>,
}

/// A lock that was wanted while another was held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The lock that was held: its place in `locks`.
    pub held: usize,
    /// The lock that was taken while the other was held: its index in `locks`.
    pub wanted: usize,
    /// How often that was seen.
    pub seen: u64,
    /// The call that took the first lock when this order was first seen, with the functions inlined
    /// there, innermost first.
    pub held_frames: Vec<Frame>,
    /// The calls that took the second lock then, innermost first.
    pub wanted_frames: Vec<Frame>,
}

/// Locks that are taken in a circle: threads that do so at the same time can deadlock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cycle {
    /// The steps of the circle: indices in `orders`. Each step acquires the lock that the next one
    /// holds.
    pub orders: Vec<usize>,
    /// Whether threads of a process were waiting for each other in this circle when it ended, or
    /// when the profile was made.
    #[serde(default)]
    pub deadlocked: bool,
    /// Whether threads were waiting for each other in this way, but one of them had a deadline.
    /// This is no deadlock, because it ends by itself.
    #[serde(default)]
    pub gives_up: bool,
}

/// A queue of threads for one lock: the longest time in which at least one thread was always
/// waiting, and at some moment several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Convoy {
    /// The lock: its place in `locks`.
    pub lock: usize,
    /// When it formed, in seconds from the start.
    pub start: f64,
    /// How long it lasted.
    pub length_ns: u64,
    /// The most threads that waited at a time.
    pub waiters_max: u32,
}

/// What would help, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// What is wrong.
    pub cause: Cause,
    /// The lock that it concerns: its index in `locks`; none if it concerns the program.
    pub lock: Option<usize>,
    /// What to do, in plain words.
    pub advice: String,
    /// The figures that say so.
    pub evidence: String,
}

/// What keeps a program waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The work done under the lock is the limit.
    LongHold,
    /// Short holds, but so frequent that handing the lock over is the limit.
    HotLock,
    /// Locks that lie in one cache line.
    FalseSharing,
    /// A reader-writer lock that is never taken for reading.
    ReadersExclude,
    /// Spinning with more threads than CPUs.
    SpinningOversubscribed,
    /// A structure that is updated often and read rarely.
    UpdateHeavy,
    /// A structure that is read often and updated rarely.
    ReadMostly,
    /// Locks taken in a circle.
    LockOrder,
}

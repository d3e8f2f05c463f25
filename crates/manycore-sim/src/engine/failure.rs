//! The cause of a simulation's failure, and the thing for which each thread waited.

use std::fmt;

use super::{Engine, State, Why};
use crate::machine::Cycles;

/// Why a simulation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A thread panicked: its number, and the message.
    Panic {
        /// The thread.
        thread: u32,
        /// The message.
        message: String,
    },
    /// No thread can continue.
    Deadlock,
    /// Threads continue, but for too long none has done anything but wait.
    Livelock,
    /// The program has ended, and has not freed all its allocations. Checked only when schedules
    /// are explored.
    Leak {
        /// The number of allocations.
        allocations: usize,
    },
    /// The same schedule of the same program had different steps: something is not deterministic.
    Nondeterminism,
}

/// A simulation that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why.
    pub cause: Cause,
    /// The time, in cycles.
    pub at: Cycles,
    /// The threads that had not ended, in the order of their numbers.
    pub blocked: Vec<Blocked>,
}

/// A thread that had not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Its number.
    pub thread: u32,
    /// What it was doing.
    pub doing: String,
    /// The simulated stack, for the first threads of a deadlock or livelock: the innermost call
    /// comes first.
    pub stack: Vec<String>,
}

impl Engine {
    /// Records what each thread is doing, before its stack is gone.
    pub(super) fn describe_threads(&mut self) {
        self.doing = (0..self.threads.len() as u32).map(|thread| self.describe(thread)).collect();
    }

    fn describe(&self, number: u32) -> Option<String> {
        let thread = &self.threads[number as usize];
        let cpu = thread.cpu;
        Some(match thread.state {
            State::Finished => return None,
            State::Ready => format!("waits for CPU {cpu}"),
            State::Running => format!("runs on CPU {cpu}"),
            State::Parked => {
                let lines: Vec<_> =
                    self.spins_on(number).iter().map(|line| format!("{line:#x}")).collect();
                format!("spins on CPU {cpu} until line {} is written", lines.join(" or "))
            }
            State::Asleep(Why::Futex(word)) => format!("sleeps until futex {word:#x} is woken"),
            State::Asleep(Why::Sleep) => "sleeps for a time".to_owned(),
            State::Asleep(Why::Join(other)) => format!("waits until thread {other} has ended"),
            State::Asleep(Why::Stalled) => "is held up by a stall".to_owned(),
        })
    }

    /// The failure, if there is one.
    pub(crate) fn into_failure(mut self) -> Option<Failure> {
        let cause = self.failure.take()?;
        self.lease.give_up();
        let at = self.cpus.iter().map(|cpu| cpu.clock).max().unwrap_or(0);
        let threads = self.threads.iter_mut().zip(std::mem::take(&mut self.doing)).enumerate();
        let blocked = threads.filter_map(|(number, (thread, doing))| {
            let stack = thread.stack.take().map(|stack| calls(&format!("{stack:#}")));
            Some(Blocked { thread: number as u32, doing: doing?, stack: stack.unwrap_or_default() })
        });
        Some(Failure { cause, at, blocked: blocked.collect() })
    }
}

/// The calls in a stack in its long form that belong to the simulated program. The innermost call
/// comes first.
fn calls(stack: &str) -> Vec<String> {
    // A frame has a line with its number, address and function, and a line with the source's
    // position if that is known.
    let lines: Vec<_> = stack.lines().map(str::trim).collect();
    let frames = lines.windows(2).filter_map(|pair| {
        let (number, rest) = pair[0].split_once(": ")?;
        number.parse::<u32>().ok()?;
        let name = rest.split_once(" - ").map_or(rest, |(_address, name)| name);
        Some((name.trim(), pair[1].strip_prefix("at ")?))
    });
    // The thread's own frames come first; those of the thread that resumed it follow.
    let of_thread = frames.take_while(|(name, _)| !name.contains("catch_unwind_at_root"));
    let own = of_thread.filter(|(_, place)| !FOREIGN.iter().any(|part| place.contains(part)));
    own.map(|(name, place)| format!("{name} at {}", from_here(place))).collect()
}

/// A path relative to the current directory.
fn from_here(path: &str) -> &str {
    let here = std::env::current_dir().ok();
    let below = here.as_ref().and_then(|here| path.strip_prefix(here.to_str()?));
    below.map_or(path, |path| path.trim_start_matches('/'))
}

/// Parts of the paths of sources that are not the program's: the simulator, facades for it, and
/// libraries.
const FOREIGN: [&str; 6] = [
    "manycore-sim/src/",
    "src/sync/simulated/",
    "registry/src/",
    "rustc/",
    "library/core/",
    "library/std/",
];

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Panic { thread, message } => write!(f, "thread {thread} panicked: {message}"),
            Self::Deadlock => write!(f, "deadlock: no thread can go on"),
            Self::Livelock => write!(f, "livelock: no thread has done anything but wait"),
            Self::Leak { allocations } => {
                write!(f, "{allocations} allocations are not freed at the end")
            }
            Self::Nondeterminism => {
                write!(f, "not deterministic: the same schedule went differently")
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} (at cycle {})", self.cause, self.at)?;
        for blocked in &self.blocked {
            write!(f, "\n  thread {} {}", blocked.thread, blocked.doing)?;
            for call in &blocked.stack {
                write!(f, "\n      in {call}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

//! A simulated thread.

use std::backtrace::Backtrace;

use corosensei::{Coroutine, Yielder};

use super::access::Pending;
use super::account::{Phase, Times};
use super::reads::Reads;
use crate::Footprint;
use crate::arena::Stack;
use crate::machine::Cycles;

/// The number of a thread, in the order of creation. The first is 0.
pub(crate) type ThreadId = u32;

pub(crate) type Body = Coroutine<(), (), (), Stack>;

/// A thread's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// In the queue of its CPU.
    Ready,
    /// On its CPU.
    Running,
    /// On its CPU, spinning until another thread writes a line that it has read.
    Parked,
    /// Not on a CPU.
    Asleep(Why),
    /// Returned.
    Finished,
}

/// Why a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Until a wake-up of the futex at the address.
    Futex(usize),
    /// Until a time.
    Sleep,
    /// Until another thread has finished.
    Join(ThreadId),
    /// Until the end of a [`Stall`].
    Stalled,
}

/// A request to take a thread off its CPU at a certain access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The number of the thread.
    pub thread: u32,
    /// The number of the access, counted from 1.
    pub access: u64,
    /// The duration.
    pub cycles: Cycles,
}

pub(crate) struct Thread {
    pub(crate) state: State,
    /// The CPU on which it runs, for which it waits, or on which it ran last.
    pub(crate) cpu: u32,
    /// Whether it stays there.
    pub(crate) pinned: bool,
    pub(crate) phase: Phase,
    pub(crate) times: Times,
    /// The time since which it has been parked, asleep or ready.
    pub(crate) since: Cycles,
    pub(crate) started: Cycles,
    pub(crate) finished: Cycles,
    pub(crate) accesses: u64,
    pub(crate) pending: Pending,
    /// The time at which the lines that it has written back to persistent memory will be safe.
    pub(crate) safe_at: Cycles,
    /// The line of its last access, if that was a load.
    pub(crate) last_load: Option<u32>,
    /// Whether the last unpredictable branch was charged the remainder of halving its cost.
    pub(crate) guessed_wrong: bool,
    /// The number of the access at which it is stalled next, and the duration.
    pub(crate) stall: Option<(u64, Cycles)>,
    pub(crate) reads: Reads,
    /// The addresses that it has read and written since it was asked to record them. On the host.
    pub(crate) footprint: Option<Box<Footprint>>,
    /// Whether its last sleep ended by a time-out.
    pub(crate) timed_out: bool,
    /// For the simulated program: it replaces thread-local memory.
    pub(crate) words: [u64; 2],
    /// The threads that wait until it has finished.
    pub(crate) joiners: Vec<ThreadId>,
    /// `None` when it has ended. In a box, because it must not move while it runs and threads are
    /// added.
    pub(crate) body: Option<Box<Body>>,
    /// Used to suspend the thread; set when it first runs.
    pub(crate) yielder: *const Yielder<(), ()>,
    /// The stack at the time at which the simulation failed.
    pub(crate) stack: Option<Box<Backtrace>>,
}

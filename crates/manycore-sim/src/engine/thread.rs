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

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// In the queue of its CPU.
    Ready,
    /// On its CPU.
    Running,
    /// On its CPU, spinning until a line is written that it has read.
    Parked,
    /// Not on a CPU.
    Asleep(Why),
    /// It has returned.
    Finished,
}

/// Why a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Until a wake-up of the futex at the address.
    Futex(usize),
    /// Until some time.
    Sleep,
    /// Until another thread has finished.
    Join(ThreadId),
    /// It is being held up by a [`Stall`].
    Stalled,
}

/// A thread is to be taken off its CPU at a certain point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The number of the thread.
    pub thread: u32,
    /// At which of its accesses, counted from 1.
    pub access: u64,
    /// For how long.
    pub cycles: Cycles,
}

pub(crate) struct Thread {
    pub(crate) state: State,
    /// The CPU that it is on, waits for, or was on last.
    pub(crate) cpu: u32,
    /// Whether it stays there.
    pub(crate) pinned: bool,
    pub(crate) phase: Phase,
    pub(crate) times: Times,
    /// Since when it has been parked, asleep or ready.
    pub(crate) since: Cycles,
    pub(crate) started: Cycles,
    pub(crate) finished: Cycles,
    pub(crate) accesses: u64,
    pub(crate) pending: Pending,
    /// When the lines will be safe that it has written back to persistent memory.
    pub(crate) safe_at: Cycles,
    /// The line of its last access, if that was a load.
    pub(crate) last_load: Option<u32>,
    /// Whether the last branch that cannot be predicted was charged the remainder of halving a
    /// cost.
    pub(crate) guessed_wrong: bool,
    /// The number of the access at which it is stalled next, and the duration.
    pub(crate) stall: Option<(u64, Cycles)>,
    pub(crate) reads: Reads,
    /// The addresses that it has read and written since it was asked to note them. On the host.
    pub(crate) footprint: Option<Box<Footprint>>,
    /// Whether its last sleep ended because time had passed.
    pub(crate) timed_out: bool,
    /// For the simulated program: it replaces thread-local memory.
    pub(crate) words: [u64; 2],
    /// Who waits until it has finished.
    pub(crate) joiners: Vec<ThreadId>,
    /// None when it has ended. In a box, so that it does not move while it runs and threads are
    /// added.
    pub(crate) body: Option<Box<Body>>,
    /// Where it suspends itself; set when it first runs.
    pub(crate) yielder: *const Yielder<(), ()>,
    /// Where it was when the simulation failed.
    pub(crate) stack: Option<Box<Backtrace>>,
}

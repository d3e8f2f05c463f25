//! The policy that chooses the next thread: virtual time, or a scheduler that explores other
//! possible orders.

use super::ThreadId;
use crate::coherence::Kind;

/// A thread that can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Choice {
    pub(crate) thread: u32,
    /// Whether it continues because time passes, and not because another thread acts.
    pub(crate) timer: bool,
}

/// Chooses the thread that runs next, when schedules are explored.
pub(crate) trait Scheduler {
    /// The index of the chosen thread.
    fn choose(&mut self, choices: &[Choice]) -> usize;

    /// Notes that a thread has nothing to do for now.
    fn yielded(&mut self, thread: u32);
}

/// The policy.
pub(crate) enum Policy {
    /// The earliest CPU runs.
    Timed,
    /// A scheduler chooses at each access; accesses cost nothing.
    Explored(Box<Explored>),
}

/// A schedule that is being explored.
pub(crate) struct Explored {
    pub(crate) scheduler: Box<dyn Scheduler>,
    /// A hash of all choices and actions so far: the same for the same schedule of the same
    /// program.
    pub(crate) trace: u64,
    /// A buffer for the choices of a step.
    choices: Vec<Choice>,
}

impl Explored {
    pub(crate) fn new(scheduler: Box<dyn Scheduler>) -> Self {
        Self { scheduler, trace: 0xCBF2_9CE4_8422_2325, choices: Vec::new() }
    }

    /// Makes one of the choices; returns its index.
    pub(super) fn choose(&mut self, choices: impl Iterator<Item = Choice>) -> Choice {
        self.choices.clear();
        self.choices.extend(choices);
        self.choices.sort_unstable();
        let chosen = self.choices[self.scheduler.choose(&self.choices)];
        self.note(u64::from(chosen.thread) << 1 | u64::from(chosen.timer));
        chosen
    }

    fn note(&mut self, what: u64) {
        // Fowler, Noll and Vo's hash, by words.
        self.trace = (self.trace ^ what).wrapping_mul(0x0000_0100_0000_01B3);
    }
}

impl Policy {
    #[inline]
    pub(crate) fn explores(&self) -> bool {
        matches!(self, Self::Explored(_))
    }

    /// Notes that a thread has nothing to do for now.
    pub(super) fn yielded(&mut self, thread: ThreadId) {
        if let Self::Explored(explored) = self {
            explored.scheduler.yielded(thread);
        }
    }

    /// Notes that a thread accesses a line.
    pub(super) fn saw(&mut self, thread: ThreadId, line: u32, kind: Kind) {
        if let Self::Explored(explored) = self {
            explored.note(u64::from(thread) << 40 | u64::from(line) << 2 | kind as u64);
        }
    }
}

//! The word of an [`Adaptive`](super::Adaptive), and a waiter's changes of it.

/// A thread has the lock.
pub(super) const HELD: u32 = 1;
/// A thread may sleep on the word.
pub(super) const SLEEPERS: u32 = 2;
/// The lock is reserved for threads that have slept, or for the first in the queue. A starving
/// waiter sets this, and clears it when it has the lock.
pub(super) const RESERVED: u32 = 4;
/// The holder has a node in the queue, and hands the lock to the next one.
pub(super) const LED: u32 = 8;
/// A waiter that polls the word adds this; at most fifteen do.
pub(super) const POLLER: u32 = 16;
pub(super) const POLLERS: u32 = 15 * POLLER;
/// While fewer pollers are counted, a release wakes a sleeper.
pub(super) const ENOUGH_POLLERS: u32 = 8 * POLLER;
/// The next release wakes a sleeper, however many poll.
pub(super) const ROTATES: u32 = 512;

/// How a waiter waits for the word.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Role {
    /// As one of many.
    #[default]
    One,
    /// As one of the pollers that are counted.
    Poller,
    /// As the first in the queue, since then.
    First(u64),
}

/// What a waiter may do, and what it has seen.
#[derive(Default)]
pub(super) struct Waiter {
    pub role: Role,
    /// The waiter may take a reserved lock.
    pub entitled: bool,
    /// The waiter was woken, and others may still be asleep.
    pub slept: bool,
    /// The waiter has waited for too long, and reserves the lock.
    pub starving: bool,
    /// How many of the waiter's spins have failed. If it gives up, the lock does not learn from
    /// them.
    pub failed_spins: u32,
}

impl Waiter {
    pub(super) fn is_first(&self) -> bool {
        matches!(self.role, Role::First(_))
    }

    pub(super) fn may_take(&self, word: u32) -> bool {
        word & HELD == 0 && (self.entitled || word & RESERVED == 0)
    }

    /// The word when this waiter has taken the lock.
    pub(super) fn taken(&self, word: u32) -> u32 {
        let others = if self.slept { SLEEPERS } else { word & SLEEPERS };
        let reserved = if self.starving { 0 } else { word & RESERVED };
        HELD | others | reserved | self.other_pollers(word)
    }

    /// The word when this waiter is about to sleep.
    pub(super) fn marked(&self, word: u32) -> u32 {
        let reserved = if self.starving { RESERVED } else { 0 };
        word & !POLLERS | self.other_pollers(word) | SLEEPERS | reserved
    }

    fn other_pollers(&self, word: u32) -> u32 {
        (word & POLLERS) - if self.role == Role::Poller { POLLER } else { 0 }
    }
}

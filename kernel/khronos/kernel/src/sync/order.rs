//! The order in which locks are taken: each has a rank, and the ranks of those that are held grow.

use core::cell::Cell;

/// Ranks of locks. Sleeping locks come first, then spinning ones, then those that interrupts take
/// as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "each names the lock's owner")]
pub enum Rank {
    None,
    Process,
    Files,
    File,
    Directory,
    Disk,
    Drive,
    Space,
    Page,
    Small,
    Pipe,
    Console,
    Pids,
    Signals,
    Stacks,
    Futex,
    Wait,
    Timers,
    Queue,
    Heap,
    Frames,
    Print,
}

const MOST: usize = 16;

/// The locks that a CPU or a thread has.
pub struct Held {
    locks: [Cell<(Rank, usize)>; MOST],
    count: Cell<usize>,
}

impl Default for Held {
    fn default() -> Self {
        Self::new()
    }
}

impl Held {
    /// None.
    pub const fn new() -> Self {
        Self { locks: [const { Cell::new((Rank::None, 0)) }; MOST], count: Cell::new(0) }
    }

    /// One is going to be taken.
    ///
    /// # Panics
    ///
    /// If the thread holds a lock of a later rank, or one of the same rank at a higher address: two
    /// threads that take them in different orders could deadlock. Only with debug assertions.
    #[track_caller]
    pub fn take(&self, rank: Rank, lock: usize) {
        if cfg!(debug_assertions) {
            let count = self.count.get();
            if let Some(last) = count.checked_sub(1) {
                let (held, at) = self.locks[last].get();
                assert!(
                    held < rank || held == rank && at < lock,
                    "takes a lock of rank {rank:?} with one of {held:?} held"
                );
            }
            assert!(count < MOST, "{MOST} locks are held");
            self.locks[count].set((rank, lock));
            self.count.set(count + 1);
        }
    }

    /// One was released, not necessarily the last.
    pub fn release(&self, lock: usize) {
        if cfg!(debug_assertions) {
            let count = self.count.get();
            let place = (0..count).rev().find(|&place| self.locks[place].get().1 == lock);
            let place = place.expect("a lock that is released is held");
            (place..count - 1).for_each(|at| self.locks[at].set(self.locks[at + 1].get()));
            self.count.set(count - 1);
        }
    }

    /// Those that are held, for a panic's report.
    pub fn iter(&self) -> impl Iterator<Item = (Rank, usize)> {
        self.locks[..self.count.get().min(MOST)].iter().map(Cell::get)
    }
}

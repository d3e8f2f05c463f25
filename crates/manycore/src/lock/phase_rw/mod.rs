//! `phase-rw`: a reader-writer lock whose readers and writers take turns.
//!
//! # Idea
//!
//! One word counts the readers that hold the lock, and says whether a writer holds it, whether
//! threads wait, and whether the chain of waiters is locked. An acquisition or a release that
//! concerns no other thread is one compare-and-swap. Otherwise the thread locks the chain, changes
//! it, and ends by *one* compare-and-swap that unlocks the chain, releases the lock and hands it
//! over. So at no moment is the lock free while a thread waits and no other thread knows that.
//! After that compare-and-swap the thread does not access the lock's memory any more, since the
//! next thread may free it.
//!
//! When a writer releases, all readers that wait get the lock together. When the last reader
//! releases, or no reader waits, the writer that has waited for longest is woken and *tries* to get
//! the lock. An arriving writer may be faster, so that the lock is used until the sleeping thread
//! runs. A writer that was overtaken goes back to the head of the chain. After a few times it
//! insists: then the lock is handed to it.
//!
//! While a writer waits, an arriving reader either passes it or waits, see [`Preference`].
//!
//! # Source
//!
//! Phases: B. B. Brandenburg, J. H. Anderson, "Spin-based reader-writer synchronization for
//! multiprocessor real-time systems", Real-Time Systems 2010. The blocking form, with time-outs and
//! overtaking writers, is ours.
//!
//! # Memory order
//!
//! Each acquisition (Acquire) reads from the releases before it (Release), all of them
//! read-modify-writes of one word. A thread to which the lock is handed acquires it by the mark in
//! its own record, a `Waiter`, from the thread that hands it over. That thread has acquired what
//! the readers before it released, when it locked the chain or handed the lock over. The chain is
//! locked by an Acquire and unlocked by a Release of the same word.
//!
//! # Cost
//!
//! Uncontended: two compare-and-swaps, each with a load before it. Readers on many CPUs contend for
//! the word. Readers that were asleep are woken one by one.
//!
//! # When not to use it
//!
//! For sections of less than a microsecond, a mutex is as good. With many parallel reads, the
//! counter in one word is the limit.

mod handoff;

use super::preference::{Preference, raw_by_preference};
use super::waiter::chain::Chain;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Deadline, const_new, mortal, mutation, order};
use crate::{LockInfo, Order};

/// A writer holds the lock.
const WRITER: u64 = 1;
/// The chain is locked.
const LOCKED: u64 = 2;
/// The chain may contain readers: a release by a writer has to check.
const READERS_WAIT: u64 = 4;
/// Writers wait: one is on the chain, or has been woken and tries.
const WRITERS_WAIT: u64 = 8;
/// A writer has been woken and tries: no other needs to be woken.
const WOKEN: u64 = 16;
const SOMEBODY_WAITS: u64 = READERS_WAIT | WRITERS_WAIT;
/// The chain is locked, and a thread may sleep until it is unlocked.
const CONTENDED: u64 = 32;
/// The generation of the process, see `WaitQueue`.
const GENERATION: u64 = 0xFFFF_FF00;
/// The count of one reader that holds the lock; the bits from here on are their number.
const READER: u64 = 1 << 32;

/// A reader-writer lock. If all bytes are zero, the lock is free.
#[derive(Debug)]
pub struct PhaseRw {
    state: AtomicU64,
    chain: Chain,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<PhaseRw>() <= 24);

impl PhaseRw {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { state: AtomicU64::new(0), chain: Chain::new() }
        }
    }

    /// Acquires the lock for reading if that needs no wait; returns whether it did.
    #[inline]
    pub fn try_read(&self, preference: Preference) -> bool {
        // Acquire: partner of the Release in `release_write`, and of the AcqRel in `pass_on`.
        self.take(order!(Acquire, "rw-read-acquire"), |state| reading(state, preference))
    }

    /// Acquires the lock for writing if that needs no wait; returns whether it did.
    #[inline]
    pub fn try_write(&self) -> bool {
        self.try_write_as(0)
    }

    /// Acquires the lock for reading unless the deadline passes first; returns whether it did.
    #[inline]
    pub fn read_until(&self, preference: Preference, deadline: Option<Deadline>) -> bool {
        self.try_read(preference) || self.wait_to_read(preference, deadline)
    }

    /// Acquires the lock for writing unless the deadline passes first; returns whether it did.
    #[inline]
    pub fn write_until(&self, deadline: Option<Deadline>) -> bool {
        self.try_write() || self.wait_to_write(deadline)
    }

    /// Releases the lock after reading.
    ///
    /// # Safety
    ///
    /// The caller has acquired the lock for reading, and has not released it since.
    #[inline]
    pub unsafe fn release_read(&self) {
        // Release: partner of the Acquire in `try_write` and `lock_chain`, and of the AcqRel in
        // `pass_on`.
        let release = order!(Release, "rw-read-release");
        let is_last = |state| state < 2 * READER;
        let left =
            |state| (!is_last(state) || state & SOMEBODY_WAITS == 0).then_some(state - READER);
        if !self.take(release, left) {
            self.pass_on(&self.lock_chain(), READER);
        }
    }

    /// Releases the lock after writing.
    ///
    /// # Safety
    ///
    /// The caller has acquired the lock for writing, and has not released it since.
    #[inline]
    pub unsafe fn release_write(&self) {
        // Release: partner of the Acquire in `try_read`, `try_write` and `lock_chain`.
        let release = order!(Release, "rw-write-release");
        let left = |state| (state & SOMEBODY_WAITS == 0).then_some(state - WRITER);
        if !self.take(release, left) {
            self.pass_on(&self.lock_chain(), WRITER);
        }
    }

    /// Moves to the next state if there is one; returns whether there was.
    #[inline]
    fn take(&self, order: Ordering, next: impl Fn(u64) -> Option<u64>) -> bool {
        // Relaxed, here and on failure: the compare-and-swap decides and orders.
        let mut state = self.state.load(Ordering::Relaxed);
        while let Some(wanted) = next(state) {
            match self.state.compare_exchange(state, wanted, order, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(changed) => state = changed,
            }
        }
        false
    }

    /// Does the same as [`try_write`](Self::try_write), for a writer that was woken (`WOKEN`) or
    /// for another one (0).
    #[inline]
    fn try_write_as(&self, woken: u64) -> bool {
        // Acquire: partner of the Release in `release_read` and `release_write`, and of the AcqRel
        // in `pass_on`.
        self.take(order!(Acquire, "rw-write-acquire"), |state| writing(state, woken))
    }
}

// SAFETY: one word says which threads hold the lock, and it lets a writer in only if none does; the
// page above has the orderings.
raw_by_preference! {
    PhaseRw,
    LockInfo {
        name: "phase-rw",
        summary: "readers count in one word; readers and writers take turns; spins, then sleeps",
        source: "Brandenburg & Anderson, Real-Time Systems 2010; blocking form ours",
        order: Order::Barging,
        blocks: true,
    }
}

/// The state after one more reader, if that is possible.
#[inline]
fn reading(state: u64, preference: Preference) -> Option<u64> {
    let stops = match preference {
        _ if mutation!("rw-reader-beside-writer") => 0,
        Preference::Readers => WRITER,
        Preference::Phases => WRITER | WRITERS_WAIT,
    };
    (state & stops == 0).then_some(state + READER)
}

/// The state after a writer, `woken` (`WOKEN` or 0), if that is possible.
#[inline]
fn writing(state: u64, woken: u64) -> Option<u64> {
    (state < READER && state & WRITER == 0).then_some((state | WRITER) & !woken)
}

impl Default for PhaseRw {
    fn default() -> Self {
        Self::new()
    }
}

mortal!(PhaseRw { state });

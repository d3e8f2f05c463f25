//! `adaptive-rw`: a reader-writer lock whose readers write separate lines when they would delay
//! each other on one.
//!
//! # Idea
//!
//! At first readers count in the lock's word, and a writer that finds it zero takes it: one
//! compare-and-swap each. Where readers contend for the word, the lock becomes *biased* towards
//! them. A reader then leaves a mark on a line of its thread, checks that no writer holds the lock
//! or waits for it, and has the lock. It has written nothing that another CPU reads.
//!
//! Writers wait in an [`Adaptive`]. The first of them stops new readers, waits until those that
//! hold the lock have left (their marks and the count are gone), and owns the lock. That takes long
//! where many lines have to be read, so not every writer does it. A writer hands the lock to the
//! next in the queue without admitting readers, up to sixteen times. Then readers have the lock for
//! as long as it took to make them leave. So each side waits for a bounded number of the other's
//! sections, and the cost of changing sides is divided by many sections.
//!
//! Stopped readers wait for the word to change, and sleep when that takes long. A reader that was
//! woken several times without success counts itself while a writer holds the lock. So it enters
//! when that writer leaves.
//!
//! While a writer waits, an arriving reader either passes it or waits, see [`Preference`].
//!
//! # Source
//!
//! The combination is ours. Marks in a table that all locks share, and a bias, are from D. Dice and
//! A. Kogan, "BRAVO: Biased Locking for Reader-Writer Locks", USENIX ATC 2019; a queue of which
//! only the first reads the word, from Linux' `qrwlock`; several writers in a row, from
//! I. Calciu et al., "NUMA-Aware Reader-Writer Locks", PPoPP 2013.
//!
//! # Memory order
//!
//! A reader leaves its mark and then reads the word; the first writer announces in the word that it
//! waits and then reads the marks. All four are sequentially consistent, so one of the two sees the
//! other. Readers' accesses are released with their count or mark, and acquired by the writer that
//! finds this gone. Writers' accesses are released with the word, and by the queue to the thread
//! that gets the lock.
//!
//! # Fork
//!
//! In the child, the parent's waiters do not count: the first thread that has to wait there repairs
//! the lock. Marks and counts of readers stay, as the locks of other threads do.
//!
//! # Cost
//!
//! Uncontended, two compare-and-swaps, and a load before each. With a bias, a reader's
//! compare-and-swaps are of a line of its own. A writer then reads as many lines as there are CPUs;
//! those that a reader has used since are in other CPUs' caches. 24 bytes, and 64 KiB for the
//! process.
//!
//! # When not to use it
//!
//! Where nearly all sections write, a mutex does the same at less cost. Where a reader must never
//! wait, use RCU.

mod marks;
mod waiting;

use super::Adaptive;
use super::preference::{Preference, raw_by_preference};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Deadline, const_new, futex, mortal_end, order, process, time, tuning};
use crate::{LockInfo, Order};
use marks::Marks;

// Sleepers wait on the lower half of the word, so every event that ends their wait changes that
// half.

/// A writer holds the lock ...
const WRITER: u64 = 1;
/// ... and the queue.
const QUEUED: u64 = 2;
/// The first writer in the queue waits for readers to leave.
const PENDING: u64 = 4;
/// Threads may sleep on the word.
const SLEEPERS: u64 = 8;
/// Readers leave marks.
const BIASED: u64 = 16;
/// A thread mends the lock after a fork.
const MENDING: u64 = 32;
/// The count of one reader in the word.
const READER: u64 = 1 << 8;
const READERS: u64 = 0xFF_FFFF << 8;

/// The generation of the process in which threads wait.
const GENERATION: u64 = 0xFF << GENERATION_SHIFT;
const GENERATION_SHIFT: u32 = 32;
/// How long it took until the readers had left, in units of [`DRAIN_UNIT`].
const DRAIN: u64 = 0xFF << DRAIN_SHIFT;
const DRAIN_SHIFT: u32 = 40;
/// In nanoseconds.
const DRAIN_UNIT: u64 = 100;
/// The events since the last writer: how often readers have contended for the word; or, with a
/// bias, one in sixteen of those that left marks.
const EVENTS: u64 = 0xFF * EVENT;
const EVENT: u64 = 1 << 48;
/// No more samples are counted.
const SAMPLES: u64 = if cfg!(loom) { EVENT } else { 15 * EVENT };
/// How much a bias is trusted: at zero it ends.
const TRUST: u64 = 0xF * TRUST_UNIT;
const TRUST_UNIT: u64 = 1 << 56;
const TRUST_AT_FIRST: u64 = 4 * TRUST_UNIT;
/// How often a bias has ended since one was worth its cost. After n ends, only one contended
/// arrival in 2^n counts towards the next bias.
const DOUBT: u64 = 0xF * DOUBT_UNIT;
const DOUBT_UNIT: u64 = 1 << 60;

/// How many writers at most follow each other while readers wait.
const WRITERS_IN_ROW: u32 = if cfg!(loom) { 2 } else { 16 };

/// The reader-writer lock that learns. If all bytes are zero, the lock is free.
#[derive(Debug)]
pub struct AdaptiveRw {
    state: AtomicU64,
    queue: Adaptive,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<AdaptiveRw>() <= 24, "it has to leave room in a pthread_rwlock_t");
const _: () = assert!(align_of::<AdaptiveRw>() >= marks::ALIGNMENT);

impl AdaptiveRw {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { state: AtomicU64::new(0), queue: Adaptive::new() }
        }
    }

    fn marks(&self) -> Marks {
        Marks::of(core::ptr::from_ref(self).addr())
    }

    /// Acquires the lock for reading if that needs no wait; returns whether it did.
    #[inline]
    pub fn try_read(&self, preference: Preference) -> bool {
        self.enter() || self.count_in(preference)
    }

    /// Acquires the lock for writing if that needs no wait; returns whether it did.
    #[inline]
    pub fn try_write(&self) -> bool {
        self.take() || self.try_write_biased()
    }

    /// Acquires the lock for reading unless the deadline passes first; returns whether it did.
    #[inline]
    pub fn read_until(&self, preference: Preference, deadline: Option<Deadline>) -> bool {
        self.read_at_first(preference) || self.wait_to_read(preference, deadline)
    }

    /// Does the same as [`try_read`](Self::try_read). But where there are many CPUs, a reader that
    /// may pass a waiting writer does not do so at first.
    #[inline]
    pub fn read_at_first(&self, preference: Preference) -> bool {
        self.enter()
            || preference == Preference::Readers
                && !waiting::has_many_cpus()
                && self.count_in(preference)
    }

    /// Acquires the lock for writing unless the deadline passes first; returns whether it did.
    #[inline]
    pub fn write_until(&self, deadline: Option<Deadline>) -> bool {
        self.take() || self.wait_to_write(deadline)
    }

    /// Releases the lock after reading.
    ///
    /// # Safety
    ///
    /// The caller has acquired the lock for reading, and has not released it since. Another thread
    /// may have acquired it for the caller.
    #[inline]
    pub unsafe fn release_read(&self) {
        // Relaxed: a bias stays while there is a mark. Without one all readers count.
        if self.state.load(Ordering::Relaxed) & BIASED == 0 {
            self.count_out();
        } else {
            self.leave();
        }
    }

    /// Releases the lock after writing.
    ///
    /// # Safety
    ///
    /// The caller has acquired the lock for writing, and has not released it since.
    #[inline]
    pub unsafe fn release_write(&self) {
        // While writers follow each other, none of them reads the word, which readers poll.
        let may_follow = self.queue.row().is_some_and(|row| row + 1 < WRITERS_IN_ROW);
        // SAFETY: the caller has a node in the queue, so that it holds the queue's lock.
        if may_follow && unsafe { self.queue.hand_over() } {
            return;
        }
        // Release: partner of the Acquires in `count_in`, `take` and `lead`. Relaxed on failure.
        let (release, failed) = (order!(Release, "adaptive-rw-write-release"), Ordering::Relaxed);
        let state = self.state.load(Ordering::Relaxed);
        let is_alone = state & (QUEUED | SLEEPERS | READERS) == 0;
        if !is_alone || self.state.compare_exchange(state, state - WRITER, release, failed).is_err()
        {
            self.release_contended();
        }
    }

    /// Removes the marks of readers that never released the lock, before its memory is reused. No
    /// thread uses the lock meanwhile.
    pub fn forget_marks(&self) {
        // Relaxed: no other thread uses it, and there are marks only with a bias.
        if self.state.load(Ordering::Relaxed) & BIASED != 0 {
            while self.marks().take_anywhere() {}
        }
    }

    /// By a mark if there is a bias, and otherwise counted; never past a writer that waits.
    #[inline]
    fn enter(&self) -> bool {
        self.mark() || self.count_in(Preference::Phases)
    }

    /// Leaves a mark, if no writer is about.
    #[inline]
    fn mark(&self) -> bool {
        let admits = |state| state & (BIASED | WRITER | PENDING) == BIASED;
        // Relaxed: a hint.
        if !admits(self.state.load(Ordering::Relaxed)) {
            return false;
        }
        let marks = self.marks();
        if !marks.leave() {
            return false;
        }
        // SeqCst: partner of the exchange in `stop_readers`. It acquires the writes released by
        // `release_write`.
        let state = self.state.load(order!(SeqCst, "adaptive-rw-admit"));
        if !admits(state) {
            self.leave();
            return false;
        }
        if marks.is_sample() && state & EVENTS < SAMPLES {
            self.count_sample();
        }
        true
    }

    /// Removes a mark or a count where there may be both. A thread with the same line may have
    /// removed this thread's mark, and left its own count to this thread.
    #[inline]
    fn leave(&self) {
        if !self.marks().take() && !self.try_count_out() {
            self.release_elsewhere();
        }
    }

    #[cold]
    fn count_sample(&self) {
        // Relaxed, throughout: a statistic, which may be lost.
        let state = self.state.load(Ordering::Relaxed);
        if state & BIASED != 0 && state & EVENTS < SAMPLES {
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            _ = self.state.compare_exchange(state, state + EVENT, done, failed);
        }
    }

    /// Counts a reader if no writer is in its way.
    #[inline]
    fn count_in(&self, preference: Preference) -> bool {
        // Acquire: partner of the Release in `release_write`. Relaxed: the exchange decides.
        let (acquire, failed) = (order!(Acquire, "adaptive-rw-read-acquire"), Ordering::Relaxed);
        let mut state = self.state.load(Ordering::Relaxed);
        let mut met = state & READERS != 0;
        while !stops(state, preference) {
            let counted = if met { with_meeting(state) } else { state } + READER;
            match self.state.compare_exchange(state, counted, acquire, failed) {
                Ok(_) => return true,
                Err(now) => (state, met) = (now, true),
            }
        }
        false
    }

    /// Removes one counted reader; the caller knows that there is one.
    #[inline]
    fn count_out(&self) {
        let address = &raw const self.state;
        // Release: partner of the Acquires in `take` and `lead`.
        let before = self.state.fetch_sub(READER, order!(Release, "adaptive-rw-read-release"));
        debug_assert!(before & READERS != 0, "no thread has it for reading");
        if before & READERS == READER {
            wake_all(address, before); // the mark stays until a writer leaves
        }
    }

    /// Removes a counted reader if there is one; returns whether there was.
    #[cold]
    fn try_count_out(&self) -> bool {
        let address = &raw const self.state;
        let mut state = self.state.load(Ordering::Relaxed); // Relaxed: the exchange decides
        while state & READERS != 0 {
            // Release: partner of the next writer's Acquire, as in `count_out`.
            let (release, failed) = (order!(Release, "adaptive-rw-read-try"), Ordering::Relaxed);
            match self.state.compare_exchange(state, state - READER, release, failed) {
                Ok(_) => {
                    if state & READERS == READER {
                        wake_all(address, state);
                    }
                    return true;
                }
                Err(now) => state = now,
            }
        }
        false
    }

    /// Takes the lock for writing if there is no bias and no thread holds it.
    #[inline]
    fn take(&self) -> bool {
        // Acquire: partner of the Releases in `count_out` and `release_write`. Relaxed: the
        // exchange decides.
        let (acquire, failed) = (order!(Acquire, "adaptive-rw-write-acquire"), Ordering::Relaxed);
        let mut state = self.state.load(Ordering::Relaxed);
        while state & (WRITER | PENDING | BIASED | READERS) == 0 {
            match self.state.compare_exchange(state, state | WRITER, acquire, failed) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }
}

/// Whether a reader that counts has to wait.
#[inline]
fn stops(state: u64, preference: Preference) -> bool {
    let by = match preference {
        Preference::Readers => WRITER,
        Preference::Phases => WRITER | PENDING,
    };
    state & by != 0
}

/// After two readers have contended for the word. There is a bias if that has happened for as long
/// as it takes until readers have left, and no writer came.
#[inline]
fn with_meeting(state: u64) -> u64 {
    if state & (BIASED | PENDING | WRITER) != 0 || !counts_meeting(state) {
        state
    } else if state & EVENTS < u64::from(tuning::meetings()) * EVENT {
        state + EVENT
    } else {
        state & !(EVENTS | TRUST) | BIASED | TRUST_AT_FIRST
    }
}

/// Whether this meeting is one of those that count: the fewer, the more doubt there is.
fn counts_meeting(state: u64) -> bool {
    let one_in = 1 << ((state & DOUBT) / DOUBT_UNIT);
    cfg!(loom) || (time::now() / 32).is_multiple_of(one_in)
}

/// After the word of a lock was changed; the lock's memory may have been freed.
#[inline]
fn wake_all(state: *const AtomicU64, before: u64) {
    if before & SLEEPERS != 0 {
        futex::wake_low(state, u32::MAX);
    }
}

fn generation() -> u64 {
    u64::from(process::generation()) << GENERATION_SHIFT & GENERATION
}

impl Default for AdaptiveRw {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for AdaptiveRw {
    fn drop(&mut self) {
        self.forget_marks();
        mortal_end!(self { state });
    }
}

// SAFETY: one word says whether a writer holds the lock. A writer is let in only by a change of
// that word while no reader is counted, and only after it has seen, with arriving readers stopped,
// that there is no mark.
raw_by_preference! {
    AdaptiveRw,
    LockInfo {
        name: "adaptive-rw",
        summary: "readers that meet mark lines of their own; writers queue, and take turns with readers; spins, then sleeps",
        source: "ours; marks: Dice & Kogan, USENIX ATC 2019",
        order: Order::Barging,
        blocks: true,
    }
}

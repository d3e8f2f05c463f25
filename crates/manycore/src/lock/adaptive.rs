//! `adaptive`: learns how long its waits are, and waits accordingly.
//!
//! # Idea
//!
//! There is no best way to wait, only a best way for a length of wait and a load. A waiter here goes through three
//! phases, and the lock learns how much of the first is worth while:
//!
//! 1. It *spins* for about four times as long as recent waits took that spinning ended. If the holder runs, that is
//!    enough nearly always. If spinning does not help, since sections are long or the holder does not run, the
//!    allowance shrinks to next to nothing; now and then a waiter spins for the longest time all the same, to see
//!    whether that has changed.
//! 2. It *yields* the CPU a few times. With more runnable threads than CPUs that is what lets the holder run, at a
//!    fraction of the price of a sleep; with fewer, it costs a system call.
//! 3. It *sleeps* until a release wakes it. A thread that runs may overtake one that was woken: that is what keeps
//!    the lock busy. But a waiter that has waited for much longer than waits usually take here *reserves* the lock.
//!    As long as it is reserved, only threads that have slept take it, in the order of their sleeps, so that nobody
//!    starves.
//!
//! # Source
//!
//! Ours. The parts are known: spinning for a learned time, from glibc's adaptive mutex; yielding before parking, from
//! WebKit's WTF::Lock; a reservation for those who have waited too long, from the starvation mode of Go's sync.Mutex.
//!
//! # Memory order
//!
//! Every acquisition is a compare-and-swap that sets `HELD` (Acquire), every release a read-modify-write of the same
//! word that clears it (Release), so each section sees the ones before it. A waiter sets `SLEEPERS` before it sleeps
//! on the word that it has set; whoever clears the mark wakes one. A woken thread sets the mark again when it
//! acquires, because it cannot know whether others sleep on. What is learned is Relaxed: numbers that steer waiting
//! and order nothing.
//!
//! # Cost
//!
//! Uncontended, two compare-and-swaps, as `futex`. 12 bytes.
//!
//! # When not to use it
//!
//! Where threads have real-time priorities: a yield does not let a thread of lower priority run. Where the order of
//! service matters, as in any lock that lets threads overtake.
#![cfg_attr(
    loom,
    allow(clippy::unnecessary_min_or_max, reason = "there its constants are as small as can be")
)]

use super::inline::{InlineLock, without_node};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Deadline, Woken, clock, const_new, cpu, futex, hint, order};
use crate::{LockInfo, Order};

/// Somebody has the lock.
const HELD: u32 = 1;
/// Somebody may sleep on the word.
const SLEEPERS: u32 = 2;
/// The lock is for those who have slept. Set by a waiter that starves, and cleared when that one has the lock.
const RESERVED: u32 = 4;

/// The longest spin, and the one that explores, in ticks: about a hundred microseconds.
const LONGEST_SPIN: u64 = 250_000;
/// The shortest spin, in ticks: a few tests of the word.
const SHORTEST_SPIN: u64 = 1_000;
/// A spin lasts this many times the usual one before it is given up.
const PERSISTENCE: u64 = 4;
/// One wait in this many explores.
const EXPLORE: u64 = 32;
/// How often a waiter yields.
const YIELDS: u32 = if cfg!(loom) { 1 } else { 32 };
/// A waiter starves after this many times the usual wait, but not before `PATIENCE` ticks (about a millisecond).
const STARVING: u64 = if cfg!(loom) { 0 } else { 16 };
const PATIENCE: u64 = if cfg!(loom) { 0 } else { 2_500_000 };
/// How long a newcomer leaves a free, reserved lock alone: longer than a wake-up takes, and a remedy if none can come,
/// because the waiter that reserved the lock is in the parent of a fork.
const RESPECT_NS: u32 = 1_000_000;

/// The lock that learns.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Adaptive {
    word: AtomicU32,
    /// How long waits took that spinning ended, in ticks: a running average.
    spun: AtomicU32,
    /// How long all waits took, in ticks: a running average.
    waited: AtomicU32,
}

impl Adaptive {
    const_new! {
        /// A lock that nobody holds.
        pub fn new() -> Self {
            Self { word: AtomicU32::new(0), spun: AtomicU32::new(0), waited: AtomicU32::new(0) }
        }
    }

    /// Acquires the lock unless the deadline passes first; says whether it did.
    #[cold]
    fn wait(&self, deadline: Option<Deadline>) -> bool {
        let start = clock::now();
        // Who has a deadline has no time to respect reservations.
        let mut waiter = Waiter { entitled: deadline.is_some(), slept: false, starving: false };
        loop {
            if self.spin(&waiter) || self.yield_cpu(&waiter) {
                break;
            }
            match self.sleep(&waiter, deadline) {
                Slept::Acquired => break,
                Slept::TimedOut => {
                    self.give_up(&waiter);
                    return false;
                }
                Slept::Woken => {
                    // Relaxed: a number that steers waiting.
                    let usual = u64::from(self.waited.load(Ordering::Relaxed));
                    let waited = clock::now().wrapping_sub(start);
                    // Once starving, always: who reserved the lock is who takes the reservation back.
                    let starving = waiter.starving || waited > PATIENCE.max(usual * STARVING);
                    waiter = Waiter { entitled: true, slept: true, starving };
                }
            }
        }
        learn(&self.waited, clock::now().wrapping_sub(start));
        true
    }

    /// Polls for as long as that has paid of late; says whether it acquired the lock.
    fn spin(&self, waiter: &Waiter) -> bool {
        if cpu::count() == 1 {
            return false;
        }
        let start = clock::now();
        // Relaxed: a number that steers waiting.
        let usual = u64::from(self.spun.load(Ordering::Relaxed));
        // Not under loom, whose executions have to be repeatable.
        let explores = !cfg!(loom) && (start / 64).is_multiple_of(EXPLORE);
        let allowance = if explores {
            LONGEST_SPIN
        } else {
            (PERSISTENCE * usual).clamp(SHORTEST_SPIN, LONGEST_SPIN)
        };
        loop {
            let spun = clock::now().wrapping_sub(start);
            if self.try_take(waiter) {
                learn(&self.spun, spun);
                return true;
            }
            if spun > allowance {
                learn(&self.spun, 0);
                return false;
            }
            hint::spin_loop();
        }
    }

    /// Yields the CPU some times; says whether it acquired the lock.
    fn yield_cpu(&self, waiter: &Waiter) -> bool {
        (0..YIELDS).any(|_| {
            hint::yield_now();
            self.try_take(waiter)
        })
    }

    /// Acquires the lock if it is free and this waiter may have it.
    fn try_take(&self, waiter: &Waiter) -> bool {
        // Relaxed: a hint; `take` decides and orders.
        let word = self.word.load(Ordering::Relaxed);
        waiter.may_take(word) && self.take(word, waiter)
    }

    fn take(&self, word: u32, waiter: &Waiter) -> bool {
        // Acquire: partner of the Releases in `release` and `release_to_waiters`. Relaxed on failure: nothing was
        // acquired.
        let acquire = order!(Acquire, "adaptive-take-acquire");
        self.word.compare_exchange(word, waiter.taken(word), acquire, Ordering::Relaxed).is_ok()
    }

    /// Marks the lock and sleeps, unless it turns out to be free.
    fn sleep(&self, waiter: &Waiter, deadline: Option<Deadline>) -> Slept {
        // Relaxed: as in `try_take`.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if waiter.may_take(word) {
                if self.take(word, waiter) {
                    return Slept::Acquired;
                }
                word = self.word.load(Ordering::Relaxed); // Relaxed: as above
                continue;
            }
            if word & HELD == 0 {
                hint::sleep(RESPECT_NS);
                // Still free, and reserved for so long: for nobody, or for one that will reserve it again.
                // Relaxed, both: nothing is published.
                let open = word & !RESERVED;
                let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
                _ = self.word.compare_exchange(word, open, done, failed);
                return Slept::Woken;
            }
            let marked = waiter.marked(word);
            // Relaxed: a mark publishes nothing; the kernel compares the word again before the sleep.
            match self.word.compare_exchange_weak(
                word,
                marked,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break word = marked,
                Err(now) => word = now,
            }
        }
        match futex::wait(&self.word, word, deadline) {
            Woken::TimedOut => Slept::TimedOut,
            Woken::Perhaps => Slept::Woken,
        }
    }

    /// Leaves without the lock, and without the reservation.
    fn give_up(&self, waiter: &Waiter) {
        // Relaxed: nothing is published.
        if waiter.starving && self.word.fetch_and(!RESERVED, Ordering::Relaxed) & HELD == 0 {
            // The release that left the lock free may have woken this thread only.
            futex::wake(&raw const self.word, 1);
        }
    }

    #[cold]
    fn release_to_waiters(&self) {
        // Release: partner of the Acquires in `try_acquire` and `take`.
        self.word.fetch_and(RESERVED, order!(Release, "adaptive-wake-release"));
        futex::wake(&raw const self.word, 1);
    }
}

/// What a waiter may do.
struct Waiter {
    /// It may take a reserved lock.
    entitled: bool,
    /// It was woken, and others may sleep on.
    slept: bool,
    /// It has waited for too long, and reserves the lock.
    starving: bool,
}

impl Waiter {
    fn may_take(&self, word: u32) -> bool {
        word & HELD == 0 && (self.entitled || word & RESERVED == 0)
    }

    /// The word when this waiter has taken the lock.
    fn taken(&self, word: u32) -> u32 {
        let others = if self.slept { SLEEPERS } else { word & SLEEPERS };
        let reserved = if self.starving { 0 } else { word & RESERVED };
        HELD | others | reserved
    }

    /// The word when this waiter is about to sleep.
    fn marked(&self, word: u32) -> u32 {
        word | SLEEPERS | if self.starving { RESERVED } else { 0 }
    }
}

enum Slept {
    Acquired,
    Woken,
    TimedOut,
}

/// Moves a running average by an eighth of the difference. Threads that do so at the same time lose one value.
fn learn(average: &AtomicU32, value: u64) {
    let value = value.min(u64::from(u32::MAX / 2)) as i64;
    // Relaxed, both: see the page.
    let old = i64::from(average.load(Ordering::Relaxed));
    average.store((old + (value - old) / 8) as u32, Ordering::Relaxed);
}

// SAFETY: `HELD` is set only by a compare-and-swap from a word without it, and cleared only in a release; twelve
// bytes, and zero is free.
unsafe impl InlineLock for Adaptive {
    const INFO: LockInfo = LockInfo {
        name: "adaptive",
        summary: "spins, yields and sleeps by what it has learned of its own waits; nobody starves",
        source: "ours",
        order: Order::Barging,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        // Acquire: partner of the Releases. Relaxed on failure: nothing was acquired.
        let acquire = order!(Acquire, "adaptive-acquire");
        self.word.compare_exchange(0, HELD, acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn acquire_contended(&self) {
        self.wait(None);
    }

    #[cold]
    fn acquire_until(&self, deadline: Deadline) -> bool {
        self.try_acquire() || self.wait(Some(deadline))
    }

    #[inline]
    unsafe fn release(&self) {
        // Release: partner of the Acquires in `try_acquire` and `take`. Relaxed on failure: nothing was released.
        let release = order!(Release, "adaptive-release");
        if self.word.compare_exchange(HELD, 0, release, Ordering::Relaxed).is_err() {
            self.release_to_waiters();
        }
    }
}

without_node!(Adaptive);

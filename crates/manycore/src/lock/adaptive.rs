//! `adaptive`: learns how long its waits are and whether CPUs are scarce, and waits accordingly.
//!
//! # Idea
//!
//! There is no best way to wait, only a best way for a length of wait and a load. A waiter here spins, then sleeps,
//! and the lock learns three things.
//!
//! 1. *How long spinning takes that ends with the lock.* A waiter spins for four times that, and at least for some
//!    microseconds: if the holder runs, that is enough nearly always. Where spins seldom pay, they are short; now and
//!    then a waiter spins for long all the same, to see whether that has changed.
//! 2. *Whether there are more runnable threads than CPUs.* If the clock jumps while a waiter spins, it did not run; if
//!    somebody slept and waited for most of a millisecond, the holder did not, or one before it. For ten milliseconds
//!    after either, the lock is *crowded*. Then spins are as short as a section allows, and none explores: who is
//!    preempted in a spin waits until all others have had their time slices, and the longest waits are made of that. And
//!    in each turn of 6 microseconds or more, one thread that finds the lock held goes to sleep at once: it makes room
//!    for the others, who would otherwise wait for a CPU for whole time slices of the scheduler, some of them with the
//!    lock in their hands. How long turns are is learned as well: who is woken soon has made room for nobody, and turns
//!    become longer; who waits long has many before it, and turns become shorter, for what each waits is all others' turns.
//!    The CPUs take turns, too: two that made room at once would both be idle until the wake-ups come.
//!
//! 3. *Whether the lock's line comes from afar.* Hardware threads of one core have the line in common: there a waiter looks at
//!    it as often as it can. Between cores each look takes the line from the holder, who has to fetch it again: there a waiter
//!    looks now and then, at random times, and short sections follow each other undisturbed meanwhile. The longer waits are, the
//!    more wait: so looks are as far apart as an eighth of the usual wait. And what spins have brought is written down with the lock in hand.
//!
//! A thread that runs may overtake one that was woken: that is what keeps the lock busy. But a waiter that has waited
//! for ten milliseconds *reserves* the lock. As long as it is reserved, only threads that have slept take it, in the
//! order of their sleeps, so that nobody starves.
//!
//! It never yields: `sched_yield` gives away a thread's share of the CPU (Linux 6.18 charges a whole time slice for
//! it), to whoever computes beside the program.
//!
//! # Source
//!
//! Ours. The parts are known: spinning for a learned time, from glibc's adaptive mutex; tests at a distance, from T. Anderson,
//! "The Performance of Spin Lock Alternatives for Shared-Memory Multiprocessors", 1990, and in proportion to waits, from J. Mellor-Crummey and
//! M. Scott, ACM TOCS 9(1), 1991; a reservation for those who
//! have waited too long, from the starvation mode of Go's sync.Mutex; few active threads that change places with the
//! sleepers, from D. Dice, "Malthusian Locks", EuroSys 2017.
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
//! Uncontended, two compare-and-swaps, as `futex`. 16 bytes.
//!
//! # When not to use it
//!
//! Where the order of service matters, as in any lock that lets threads overtake. Where dozens of threads contend, each on a core of
//! its own: all poll one word.
#![cfg_attr(
    loom,
    allow(
        clippy::unnecessary_min_or_max,
        clippy::absurd_extreme_comparisons,
        reason = "there its constants are as small as can be"
    )
)]

mod learned;

use learned::{Crowd, Spins, Turn};

use super::plain::{PlainLock, without_node};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Deadline, Woken, clock, const_new, cpu, futex, hint, order};
use crate::{LockInfo, Order};

/// Somebody has the lock.
const HELD: u32 = 1;
/// Somebody may sleep on the word.
const SLEEPERS: u32 = 2;
/// The lock is for those who have slept. Set by a waiter that starves, and cleared when that one has the lock.
const RESERVED: u32 = 4;

// Times are in ticks; those in parentheses hold where the counter runs at 2.5 GHz. Under loom, all is as short as it
// can be without skipping a branch.

/// One spin in this many explores.
const EXPLORE: u64 = 32;
/// Who has slept and waited for longer says that somebody did not run (720 us).
const LONG_WAIT: u64 = if cfg!(loom) { 0 } else { 1_800_000 };
/// A clock that jumps by more while a thread spins says that the thread did not run (100 us).
const JUMP: u64 = 250_000;
/// For how long a lock stays crowded after a sign of it (10 ms).
const CROWDED: u32 = if cfg!(loom) { u32::MAX } else { 25_000_000 };
/// The CPU that made room last does so again after so many turns without another.
const TURNS_OF_OTHERS: u64 = 4;
/// One spin in this many looks where the lock's line comes from.
const LOOK_AT_LINE: u64 = 16;
/// To read the word and swap it takes no longer (64 ns) if the line is near. With the measurement itself, it took 60 to 150 ticks
/// between hardware threads of a core, and 360 to 440 between cores of an AMD EPYC.
const NEAR: u64 = 160;
/// So often a newcomer looks at a near line before it does anything else, if waits are short.
const GLANCES: u32 = if cfg!(loom) { 1 } else { 3 };
/// Between two looks at a line from afar a waiter leaves it alone, for between one and two times this long (80 ns), ...
const APART: u64 = 200;
/// ... or the usual wait divided by this, if that is longer: then many together look no more often than a few do.
const LOOKS_IN_WAIT: u64 = 8;
/// A waiter starves after so long (10 ms).
const PATIENCE: u64 = if cfg!(loom) { 0 } else { 25_000_000 };
/// How long a newcomer leaves a free, reserved lock alone: longer than a wake-up takes, and a remedy if none can come,
/// because the waiter that reserved the lock is in the parent of a fork.
const RESPECT_NS: u32 = 1_000_000;

/// The lock that learns.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Adaptive {
    word: AtomicU32,
    /// What spinning has brought of late, see [`Spins`].
    spins: AtomicU32,
    /// When there was a sign that CPUs are scarce, and how long turns are, see [`Crowd`].
    crowd: AtomicU32,
    /// When a newcomer last made room, and where, see [`Turn`].
    turn: AtomicU32,
}

impl Adaptive {
    const_new! {
        /// A lock that nobody holds.
        pub fn new() -> Self {
            Self {
                word: AtomicU32::new(0),
                spins: AtomicU32::new(0),
                crowd: AtomicU32::new(0),
                turn: AtomicU32::new(0),
            }
        }
    }

    /// Acquires the lock unless the deadline passes first; says whether it did.
    #[cold]
    fn wait(&self, deadline: Option<Deadline>) -> bool {
        // Who has a deadline has no time to respect reservations.
        let mut waiter = Waiter { entitled: deadline.is_some(), ..Waiter::default() };
        // While others sleep, a free lock is acquired here.
        if self.try_take(&waiter) || self.glance(&waiter) {
            return true;
        }
        let start = clock::now();
        let made_room = self.makes_room(start);
        while (made_room && !waiter.slept) || !self.spin(&mut waiter) {
            match self.sleep(&waiter, deadline) {
                Slept::Acquired => {
                    self.update_spins(|spins| spins.and_failures(waiter.failed_spins));
                    break;
                }
                Slept::TimedOut => {
                    self.give_up(&waiter);
                    return false;
                }
                Slept::Woken => {
                    // Once starving, always: who reserved the lock is who takes the reservation back.
                    let now = clock::now();
                    let waited = now.wrapping_sub(start);
                    if made_room && !waiter.slept {
                        self.update_crowd(|crowd| crowd.with_room_made_for(waited));
                    }
                    if waited > LONG_WAIT {
                        self.notice_crowd(now);
                    }
                    let starving = waiter.starving || waited > PATIENCE;
                    waiter = Waiter { entitled: true, slept: true, starving, ..waiter };
                }
            }
        }
        true
    }

    fn spins(&self) -> Spins {
        Spins(self.spins.load(Ordering::Relaxed)) // Relaxed: steers waiting
    }

    /// Polls a few times before anything else if sections are so short that even reading the clock shows; says whether it acquired
    /// the lock.
    fn glance(&self, waiter: &Waiter) -> bool {
        let spins = self.spins();
        let pays = spins.are_short() && !spins.lines_come_from_afar();
        (0..if pays { GLANCES } else { 0 }).any(|_| {
            hint::spin_loop();
            self.try_take(waiter)
        })
    }

    /// Polls for as long as that is worth while; says whether it acquired the lock.
    fn spin(&self, waiter: &mut Waiter) -> bool {
        let spins = self.spins();
        let start = clock::now();
        let allowance = spins.allowance(explores(start), self.is_crowded(start));
        let mut spun = 0;
        while !self.try_take(waiter) {
            if spun > allowance {
                waiter.failed_spins += 1;
                return false;
            }
            if spins.lines_come_from_afar() {
                leave_alone(start.wrapping_add(spun), u64::from(spins.usual()));
            } else {
                hint::spin_loop();
            }
            let before = spun;
            spun = clock::now().wrapping_sub(start);
            if spun - before > JUMP {
                self.notice_crowd(start.wrapping_add(spun));
            }
        }
        let line_is_near = looks_at_line(start).then(|| {
            let taken = clock::ordered().wrapping_sub(start);
            taken.wrapping_sub(spun) <= NEAR
        });
        self.update_spins(|spins| {
            let mut learned = spins.and_failures(waiter.failed_spins);
            if let Some(is_near) = line_is_near {
                learned = learned.and_line(is_near);
            }
            // Who was woken and finds the lock free has not spun: counted, it would make spins ever shorter.
            let woken_to_free = waiter.slept && spun == 0;
            if woken_to_free { learned } else { learned.and_success(spun) }
        });
        true
    }

    /// For who has the lock: anybody else would take its line from the holder.
    fn update_spins(&self, update: impl FnOnce(Spins) -> Spins) {
        let spins = self.spins();
        let learned = update(spins);
        if learned != spins {
            self.spins.store(learned.0, Ordering::Relaxed); // Relaxed: steers waiting
        }
    }

    fn crowd(&self) -> Crowd {
        Crowd(self.crowd.load(Ordering::Relaxed)) // Relaxed: steers waiting
    }

    fn update_crowd(&self, update: impl FnOnce(Crowd) -> Crowd) {
        // Relaxed: steers waiting. Of two updates at the same time one may be lost.
        self.crowd.store(update(self.crowd()).0, Ordering::Relaxed);
    }

    fn notice_crowd(&self, now: u64) {
        self.update_crowd(|crowd| crowd.with_sign(now));
    }

    fn is_crowded(&self, now: u64) -> bool {
        let crowd = self.crowd();
        let recent = crowd.since_sign(now) < CROWDED;
        if crowd.has_sign() && !recent {
            // Or it would look recent again when the counter wraps.
            self.update_crowd(Crowd::without_sign);
        }
        crowd.has_sign() && recent
    }

    /// Whether this newcomer is the one that goes to sleep in this turn.
    fn makes_room(&self, now: u64) -> bool {
        let last = Turn(self.turn.load(Ordering::Relaxed)); // Relaxed: steers waiting
        let length = self.spins().turn(self.crowd());
        let since = last.since(now);
        // Under loom, whose executions have to be repeatable, always.
        let is_over = cfg!(loom) || since > length;
        if !is_over || !self.is_crowded(now) {
            return false;
        }
        let cpu = cpu::here();
        let due = cfg!(loom) || last.was_elsewhere(cpu) || since > TURNS_OF_OTHERS * length;
        if due {
            self.turn.store(Turn::new(now, cpu).0, Ordering::Relaxed); // Relaxed: steers waiting
        }
        due
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
                self.respect(word);
                return Slept::Woken;
            }
            let marked = waiter.marked(word);
            // Relaxed: a mark publishes nothing; the kernel compares the word again before the sleep.
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            match self.word.compare_exchange_weak(word, marked, done, failed) {
                Ok(_) => break word = marked,
                Err(now) => word = now,
            }
        }
        match futex::wait(&self.word, word, deadline) {
            Woken::TimedOut => Slept::TimedOut,
            Woken::Perhaps => Slept::Woken,
        }
    }

    /// Leaves a lock alone that is free but reserved, for a while.
    fn respect(&self, word: u32) {
        hint::sleep(RESPECT_NS);
        // Still free, and reserved for so long: for nobody, or for one that will reserve it again.
        // Relaxed, both: nothing is published.
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        _ = self.word.compare_exchange(word, word & !RESERVED, done, failed);
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

/// Whether a spin that begins now is one that explores. Not under loom, whose executions have to be repeatable.
fn explores(now: u64) -> bool {
    !cfg!(loom) && (now / 64).is_multiple_of(EXPLORE)
}

/// Whether a spin that began now looks where the lock's line comes from: some do, because that takes some dozen nanoseconds.
fn looks_at_line(now: u64) -> bool {
    cfg!(loom) || (now / 32).is_multiple_of(LOOK_AT_LINE)
}

/// Passes some time where waits usually take so long.
fn leave_alone(now: u64, usual: u64) {
    let apart = APART.max(usual / LOOKS_IN_WAIT);
    // At random, or looks may come at the same moment of each section.
    let random = now.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    hint::delay(apart + random % apart);
}

/// What a waiter may do, and what it has seen.
#[derive(Default)]
struct Waiter {
    /// It may take a reserved lock.
    entitled: bool,
    /// It was woken, and others may sleep on.
    slept: bool,
    /// It has waited for too long, and reserves the lock.
    starving: bool,
    /// So many of its spins have failed; nobody hears of them if it gives up.
    failed_spins: u32,
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

// SAFETY: `HELD` is set only by a compare-and-swap from a word without it, and cleared only in a release; sixteen
// bytes, and zero is free.
unsafe impl PlainLock for Adaptive {
    const INFO: LockInfo = LockInfo {
        name: "adaptive",
        summary: "spins and sleeps by what it has learned of its own waits and of the load; nobody starves",
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

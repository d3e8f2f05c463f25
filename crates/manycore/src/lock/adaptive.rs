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
//!    in each turn of 5 microseconds or more, one thread that finds the lock held goes to sleep at once: it makes room
//!    for the others, who would otherwise wait for a CPU for whole time slices of the scheduler, some of them with the
//!    lock in their hands. How long turns are is learned as well: who is woken soon has made room for nobody, and turns
//!    become longer; who waits long has many before it, and turns become shorter, for what each waits is all others' turns.
//!    The CPUs take turns, too: two that made room at once would both be idle until the wake-ups come.
//!
//! 3. *Whether a short section is fought over.* If waits are short, and a waiter got the lock only a moment before, then
//!    what costs may be that the lock's line goes from CPU to CPU. Whether it does is measured: hardware threads of one core have
//!    the line in common. If it does, a newcomer leaves the lock alone for some microseconds
//!    before it looks at it again. Meanwhile the holder has many turns with a line that stays where it is.
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
//! "The Performance of Spin Lock Alternatives for Shared-Memory Multiprocessors", 1990; a reservation for those who
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
//! Where the order of service matters, as in any lock that lets threads overtake.
#![cfg_attr(
    loom,
    allow(
        clippy::unnecessary_min_or_max,
        clippy::absurd_extreme_comparisons,
        reason = "there its constants are as small as can be"
    )
)]

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

/// The longest spin, and the one that explores (100 us).
const LONGEST_SPIN: u64 = if cfg!(loom) { 0 } else { 250_000 };
/// The shortest spin while CPUs are to spare (24 us): less than a sleep costs.
const SHORTEST_SPIN: u64 = if cfg!(loom) { 0 } else { 60_000 };
/// The shortest spin in a crowd (560 ns).
const SHORTEST_SPIN_IN_CROWD: u64 = if cfg!(loom) { 0 } else { 1_400 };
/// A spin lasts this many times the usual one before it is given up.
const PERSISTENCE: u64 = 4;
/// One spin in this many explores.
const EXPLORE: u64 = 32;
/// Spins are worth while if at least so many of 256 end with the lock.
const WORTH_WHILE: u32 = 32;
/// Who has slept and waited for longer says that somebody did not run (720 us).
const LONG_WAIT: u64 = if cfg!(loom) { 0 } else { 1_800_000 };
/// A clock that jumps by more while a thread spins says that the thread did not run (100 us).
const JUMP: u64 = 250_000;
/// For how long a lock stays crowded after a sign of it (10 ms).
const CROWDED: u32 = if cfg!(loom) { u32::MAX } else { 25_000_000 };
/// In a crowd, one newcomer sleeps at once in each turn. Where waits are so short (240 ns) ...
const SHORT_WAIT: u32 = 600;
/// ... that a switch of threads costs as much as many sections, turns are long (160 us).
const TURN_AMONG_SHORT_WAITS: u32 = if cfg!(loom) { 0 } else { 400_000 };
/// Otherwise a turn is as long as so many usual waits, ...
const TURN_WAITS: u32 = if cfg!(loom) { 0 } else { 6 };
/// ... and at least as long as was learned: between this (5 us) ...
const SHORTEST_TURN: u32 = 12;
/// ... and this (40 us), both in units of [`Crowd::TURN`].
const LONGEST_TURN: u32 = 98;
/// Who is woken sooner (40 us) has made room for nobody, or nearly so.
const WOKEN_SOON: u64 = if cfg!(loom) { 0 } else { 100_000 };
/// Who waits for longer (100 us) has many before it.
const WOKEN_LATE: u64 = if cfg!(loom) { 0 } else { 250_000 };
/// The CPU that made room last does so again after so many turns without another.
const TURNS_OF_OTHERS: u32 = 4;
/// A lock with short waits is fought over for so long after a waiter got it (480 ns).
const FOUGHT_OVER: u32 = if cfg!(loom) { 0 } else { 1200 };
/// One spin in this many looks where the lock's line comes from, and all after which it was left alone.
const LOOK_AT_LINE: u64 = 16;
/// To read the word and swap it takes no longer (64 ns) if the line is near. With the measurement itself, it took 60 to 150 ticks between
/// hardware threads of a core, and 360 to 440 between cores of an AMD EPYC.
const NEAR: u64 = 160;
/// For how long a newcomer leaves it alone, at most (2 us); at least four fifths of that, because the longest waits are made of it.
const LEAVE_ALONE: u64 = 5_000;
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
    /// When a newcomer last made room, and where, and when a waiter last got the lock, see [`Times`].
    times: AtomicU32,
}

impl Adaptive {
    const_new! {
        /// A lock that nobody holds.
        pub fn new() -> Self {
            Self {
                word: AtomicU32::new(0),
                spins: AtomicU32::new(0),
                crowd: AtomicU32::new(0),
                times: AtomicU32::new(0),
            }
        }
    }

    /// Acquires the lock unless the deadline passes first; says whether it did.
    #[cold]
    fn wait(&self, deadline: Option<Deadline>) -> bool {
        // Who has a deadline has no time to respect reservations.
        let mut waiter = Waiter { entitled: deadline.is_some(), slept: false, starving: false };
        // While others sleep, a free lock is acquired here.
        if self.try_take(&waiter) {
            return true;
        }
        let start = clock::now();
        let made_room = self.makes_room(start);
        while (made_room && !waiter.slept) || !self.spin(&waiter) {
            match self.sleep(&waiter, deadline) {
                Slept::Acquired => break,
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
                    waiter = Waiter { entitled: true, slept: true, starving };
                }
            }
        }
        true
    }

    /// Polls for as long as that is worth while; says whether it acquired the lock.
    fn spin(&self, waiter: &Waiter) -> bool {
        let spins = Spins(self.spins.load(Ordering::Relaxed)); // Relaxed: steers waiting
        let mut start = clock::now();
        let explores = explores(start);
        let distant = !waiter.entitled && !explores && self.is_fought_over(spins, start);
        if distant {
            leave_alone(start);
            start = clock::now();
        }
        let allowance = spins.allowance(explores, self.is_crowded(start));
        let mut spun = 0;
        let acquired = loop {
            if self.try_take(waiter) {
                break true;
            }
            if spun > allowance {
                break false;
            }
            hint::spin_loop();
            let before = spun;
            spun = clock::now().wrapping_sub(start);
            if spun - before > JUMP {
                self.notice_crowd(start.wrapping_add(spun));
            }
        };
        let mut learned = spins;
        if acquired {
            if distant || looks_at_line(start) {
                let taken = clock::ordered().wrapping_sub(start);
                learned = learned.and_line(taken.wrapping_sub(spun) <= NEAR);
            }
            self.update_times(|times| times.with_taken(start.wrapping_add(spun)));
        }
        // Who was woken and finds the lock free has not spun: counted, it would make spins ever shorter.
        let woken_to_free = waiter.slept && spun == 0;
        if !distant && !woken_to_free {
            learned = learned.and(acquired, spun);
        }
        self.spins.store(learned.0, Ordering::Relaxed); // Relaxed: steers waiting
        acquired
    }

    /// Whether moving the lock's line between CPUs is what costs.
    fn is_fought_over(&self, spins: Spins, now: u64) -> bool {
        // Relaxed: steers waiting.
        let times = Times(self.times.load(Ordering::Relaxed));
        spins.usual() < SHORT_WAIT
            && spins.lines_come_from_afar()
            && times.since_taken(now) < FOUGHT_OVER
    }

    fn update_times(&self, update: impl FnOnce(Times) -> Times) {
        // Relaxed, both: steers waiting. Of two updates at the same time one may be lost.
        let times = Times(self.times.load(Ordering::Relaxed));
        self.times.store(update(times).0, Ordering::Relaxed);
    }

    fn crowd(&self) -> Crowd {
        Crowd(self.crowd.load(Ordering::Relaxed)) // Relaxed: steers waiting
    }

    fn update_crowd(&self, update: impl FnOnce(Crowd) -> Crowd) {
        // Relaxed: as in `update_times`.
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
        // Relaxed, both: steers waiting.
        let times = Times(self.times.load(Ordering::Relaxed));
        let length = Spins(self.spins.load(Ordering::Relaxed)).turn(self.crowd());
        let since = times.since_turn(now);
        // Under loom, whose executions have to be repeatable, always.
        let is_over = cfg!(loom) || since > length;
        if !is_over || !self.is_crowded(now) {
            return false;
        }
        let cpu = cpu::here();
        let due = cfg!(loom) || times.was_elsewhere(cpu) || since > TURNS_OF_OTHERS * length;
        if due {
            self.update_times(|times| times.with_turn(now, cpu));
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

/// What spinning has brought of late: in the low 18 bits, how long spins took that ended with the lock, in ticks; in
/// the 6 bits above, votes for that the lock's line was near then; in the high 8 bits, how many of 256 ended so. All zero
/// is nothing known, and takes lines to come from afar.
#[derive(Clone, Copy)]
struct Spins(u32);

impl Spins {
    const USUAL: u32 = (1 << 18) - 1;
    const VOTES: u32 = 63;

    fn new(paid: u32, votes: u32, usual: u32) -> Self {
        Self(paid << 24 | votes << 18 | usual)
    }

    fn usual(self) -> u32 {
        self.0 & Self::USUAL
    }

    fn votes(self) -> u32 {
        self.0 >> 18 & Self::VOTES
    }

    fn paid(self) -> u32 {
        self.0 >> 24
    }

    fn lines_come_from_afar(self) -> bool {
        self.votes() <= Self::VOTES / 2
    }

    /// How long to spin, in ticks.
    fn allowance(self, explores: bool, crowded: bool) -> u64 {
        let shortest = if crowded { SHORTEST_SPIN_IN_CROWD } else { SHORTEST_SPIN };
        if explores && !crowded {
            LONGEST_SPIN
        } else if self.paid() >= WORTH_WHILE {
            (PERSISTENCE * u64::from(self.usual())).clamp(shortest, LONGEST_SPIN)
        } else {
            shortest
        }
    }

    /// How long a turn is, in ticks.
    fn turn(self, crowd: Crowd) -> u32 {
        if self.usual() < SHORT_WAIT {
            TURN_AMONG_SHORT_WAITS
        } else {
            (TURN_WAITS * self.usual()).max(crowd.turn() * Crowd::TURN)
        }
    }

    /// After the lock's line has come once more. The vote moves by one, so that it takes some dozen to change it.
    fn and_line(self, is_near: bool) -> Self {
        let votes = if is_near {
            (self.votes() + 1).min(Self::VOTES)
        } else {
            self.votes().saturating_sub(1)
        };
        Self::new(self.paid(), votes, self.usual())
    }

    /// After one more spin: both numbers move by an eighth. Of threads that write at the same time, one is lost.
    fn and(self, acquired: bool, spun: u64) -> Self {
        let (mut usual, mut paid) = (self.usual(), self.paid());
        if acquired {
            let spun = spun.min(LONGEST_SPIN) as i64;
            usual = (i64::from(usual) + (spun - i64::from(usual)) / 8) as u32;
            paid += (255 - paid).div_ceil(8);
        } else {
            paid -= paid.div_ceil(8);
        }
        Self::new(paid, self.votes(), usual)
    }
}

const _: () = assert!(LONGEST_SPIN <= Spins::USUAL as u64);

/// In the high 24 bits, when there was a sign that CPUs are scarce, in units of 256 ticks; in the 7 bits below, how long
/// turns are, in units of 1024; in the lowest, whether there was a sign of late. All zero is none, and the shortest turns.
#[derive(Clone, Copy)]
struct Crowd(u32);

impl Crowd {
    /// The unit of turns, in ticks.
    const TURN: u32 = if cfg!(loom) { 0 } else { 1024 };
    const TURNS: u32 = 0x7F;
    const SIGN: u32 = 1;

    fn has_sign(self) -> bool {
        self.0 & Self::SIGN != 0
    }

    /// How long ago the last sign was, in ticks.
    fn since_sign(self, now: u64) -> u32 {
        (now as u32 & !0xFF).wrapping_sub(self.0 & !0xFF)
    }

    fn with_sign(self, now: u64) -> Self {
        Self(now as u32 & !0xFF | self.0 & 0xFF | Self::SIGN)
    }

    fn without_sign(self) -> Self {
        Self(self.0 & !Self::SIGN)
    }

    /// The shortest that turns are, in units.
    fn turn(self) -> u32 {
        (self.0 >> 1 & Self::TURNS).max(SHORTEST_TURN)
    }

    /// After a thread has made room, and was woken after so long. Turns become shorter faster than they grow: what is waited for
    /// longest is a row of long ones.
    fn with_room_made_for(self, waited: u64) -> Self {
        let turn = self.turn();
        let turn = if waited < WOKEN_SOON {
            (turn + (turn / 16).max(1)).min(LONGEST_TURN)
        } else if waited >= WOKEN_LATE {
            turn - turn.div_ceil(8)
        } else {
            turn
        };
        Self(self.0 & !(Self::TURNS << 1) | turn << 1)
    }
}

/// Two moments: in the high 14 bits, when a newcomer last made room, in units of 4096 ticks, and in the 2 bits below, the end
/// of its CPU's number; in the low half, when a waiter last got the lock after spinning, in units of 8. That the times wrap, after
/// 26 ms and 0.2 ms, is rarely noticed, and does little then.
#[derive(Clone, Copy)]
struct Times(u32);

impl Times {
    const TURN: u32 = 12;
    const TAKEN: u32 = 3;
    const CPU: u32 = 0b11;

    fn since_turn(self, now: u64) -> u32 {
        let units = ((now >> Self::TURN) as u32).wrapping_sub(self.0 >> 18) & 0x3FFF;
        units << Self::TURN
    }

    /// Whether another CPU than this made room last; of other numbers, one in four is taken for this one.
    fn was_elsewhere(self, cpu: u32) -> bool {
        self.0 >> 16 & Self::CPU != cpu & Self::CPU
    }

    fn since_taken(self, now: u64) -> u32 {
        let units = ((now >> Self::TAKEN) as u16).wrapping_sub(self.0 as u16);
        u32::from(units) << Self::TAKEN
    }

    fn with_turn(self, now: u64, cpu: u32) -> Self {
        let moment = ((now >> Self::TURN) as u32) << 18;
        Self(moment | (cpu & Self::CPU) << 16 | self.0 & 0xFFFF)
    }

    fn with_taken(self, now: u64) -> Self {
        Self(self.0 & !0xFFFF | u32::from((now >> Self::TAKEN) as u16))
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

/// Passes between four fifths of [`LEAVE_ALONE`] and all of it.
fn leave_alone(now: u64) {
    // Two newcomers differ in the moment.
    let random = now.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let least = LEAVE_ALONE / 5 * 4;
    hint::delay(least + random % (LEAVE_ALONE - least));
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn turns_grow_while_room_is_made_for_nobody_and_shrink_while_many_wait() {
        let after = |crowd: Crowd, waited, times| {
            (0..times).fold(crowd, |crowd, _| crowd.with_room_made_for(waited))
        };
        let crowd = Crowd(0).with_sign(1 << 20);
        assert_eq!(crowd.turn(), SHORTEST_TURN);
        let soon = after(crowd, WOKEN_SOON - 1, 5);
        assert!(soon.turn() > SHORTEST_TURN && soon.turn() < LONGEST_TURN);
        assert_eq!(after(soon, WOKEN_SOON, 100).turn(), soon.turn());
        let longest = after(soon, 0, 100);
        assert_eq!(longest.turn(), LONGEST_TURN);
        assert_eq!(after(longest, WOKEN_LATE, 100).turn(), SHORTEST_TURN);
        // The other half of the word is as it was.
        assert!(longest.has_sign() && longest.since_sign((1 << 20) + 512) == 512);
        assert_eq!(longest.without_sign().turn(), LONGEST_TURN);
    }

    #[test]
    fn lines_are_far_until_most_are_seen_to_be_near() {
        let spins = Spins(0).and(true, 800);
        assert!(spins.lines_come_from_afar());
        let near = (0..100).fold(spins, |spins, _| spins.and_line(true));
        assert!(!near.lines_come_from_afar());
        assert!(!near.and_line(false).lines_come_from_afar(), "one of many is an accident");
        let far = (0..40).fold(near, |spins, _| spins.and_line(false));
        assert!(far.lines_come_from_afar());
        assert_eq!((far.usual(), far.paid()), (100, 32));
    }

    #[test]
    fn a_word_has_room_for_the_longest_spin() {
        let spins = (0..200).fold(Spins(0), |spins, _| spins.and(true, u64::MAX));
        assert!(spins.usual() > LONGEST_SPIN as u32 - 8 && spins.paid() == 255);
        assert_eq!(spins.votes(), 0);
    }

    #[test]
    fn turns_know_their_moment_and_their_cpu() {
        let now = 0x1234_5678_9ABC;
        let times = Times(0).with_turn(now, 6).with_taken(now);
        assert!(!times.was_elsewhere(6) && times.was_elsewhere(7));
        assert!(times.since_turn(now) == 0 && times.since_taken(now) == 0);
        let (soon, late) = (times.since_turn(now + 12_288), times.since_turn(now + (1 << 25)));
        assert!((8_192..=12_288).contains(&soon) && late == 1 << 25, "{soon} {late}");
    }
}

//! `adaptive`: learns how long its waits are and whether CPUs are scarce, and waits accordingly.
//!
//! # Idea
//!
//! The best way to wait depends on the length of the wait, the number of waiters, and the load.
//!
//! *Many CPUs, and enough of them.* Waiters queue. Only the first polls the lock's word; the others
//! poll nodes of their own. If the first gets the lock and another waiter is behind it, it keeps
//! its node, and later hands the lock over to that waiter directly: one transfer of a line, as in
//! `mcs`. That waiter does the same, and so on. But a thread that comes back within the time of a
//! transfer should not give the lock away. Where most threads that get the lock by a hand-over had
//! just released it, holders leave the word free. The first then polls the word only now and then,
//! until it has waited for 120 us: then it *reserves* the lock, and gets it by the next release. So
//! each thread has a stint of some hundred short sections, in which no line moves.
//!
//! *Few CPUs (8 and fewer), or oversubscribed ones.* A waiter polls, then parks. The lock learns:
//!
//! 1. *How long successful polls take.* A waiter polls for four times that, and at least for some
//!    microseconds: if the holder runs, that is nearly always enough. Where polls seldom succeed,
//!    they are short. Where they hardly ever succeed, they take half a microsecond: two threads
//!    that signal each other share a CPU, and the holder cannot run while the other polls. Now and
//!    then a waiter polls for long nevertheless, to find out whether that has changed.
//! 2. *Whether CPUs are oversubscribed.* There are two signs that more threads are runnable than
//!    there are CPUs. The clock jumps while a waiter polls: the waiter was preempted. Or a parked
//!    waiter is not woken for most of a millisecond: a holder was preempted. For ten milliseconds
//!    after either sign, on many CPUs for a hundred, all locks of the process act on it:
//!    - No thread waits in a queue, because the next thread there may not run.
//!    - Polls are as short as a critical section allows, and none is longer to find something out:
//!      a thread that is preempted in a poll waits until all others have had their time slices.
//!    - In each interval of 6 microseconds or more, one thread that finds a lock held *parks
//!      voluntarily*, without a poll. Otherwise threads would wait for a CPU for whole time slices,
//!      and some of them would hold the lock meanwhile. The interval grows if such a thread is
//!      woken soon, since no other thread needed its CPU; it shrinks if the thread sleeps for long,
//!      since many wait. CPUs take turns: two that park together would both be idle meanwhile.
//!    - On many CPUs at most fifteen threads poll, and each polls for longer. The others sleep. One
//!      is woken whenever fewer than eight poll, and one each 100 us, so that all take turns.
//! 3. *Whether the lock's cache line is remote.* Hardware threads of one core share the line: there
//!    a waiter polls it as often as it can. Between cores each poll takes the line from the holder,
//!    which has to fetch it again: there a waiter polls now and then, at random times. The longer
//!    waits are, the more threads wait. So the time between two polls is an eighth of the usual
//!    wait. A thread records the results of its polls when it holds the lock.
//!
//! A running thread may overtake one that was woken: that keeps the lock busy. But a waiter that
//! has waited for ten milliseconds reserves the lock. While the lock is reserved, only threads that
//! have slept take it, in the order of their sleeps. So no thread starves.
//!
//! A waiter never yields: `sched_yield` gives a thread's share of the CPU (Linux 6.18 charges a
//! whole time slice for it) to unrelated threads that compute.
//!
//! # Source
//!
//! The combination is ours. The parts are known: spinning for a learned time, from glibc's adaptive
//! mutex; pauses between tests, from T. Anderson, "The Performance of Spin Lock Alternatives for
//! Shared-Memory Multiprocessors", 1990; pauses in proportion to waits, and the queue with its
//! hand-over, from J. Mellor-Crummey and M. Scott, ACM TOCS 9(1), 1991; a word before the queue,
//! from Linux' queued spin lock; a reservation after a long wait, from the starvation mode of Go's
//! sync.Mutex; few active threads that change roles with the sleepers, from D. Dice, "Malthusian
//! Locks", EuroSys 2017.
//!
//! # Memory order
//!
//! Most acquisitions are a compare-and-swap that sets `HELD` (Acquire). Most releases are a
//! read-modify-write of the same word that clears it (Release). So each section sees the ones
//! before it. A hand-over in the queue leaves `HELD` set; the message to the next thread's node
//! orders the sections (Release, Acquire). A waiter sets `SLEEPERS` before it sleeps on the word
//! that it has set; a thread that clears the mark wakes one. A woken thread sets the mark again
//! when it acquires, because it cannot know whether others are still asleep. What the lock has
//! learned is Relaxed: numbers that control waiting and order nothing.
//!
//! # Fork
//!
//! In the child, nodes of the parent's other threads do not count: the first thread that comes
//! polls the word. The word may count the parent's pollers: then each release wakes a sleeper.
//!
//! # Cost
//!
//! 16 bytes. Uncontended, two compare-and-swaps, as `futex`, and a read of the thread's notes.
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

mod learned;
mod noted;
mod queue_node;
mod row;
mod scarcity;
mod waiter;

pub(super) use scarcity::has_sign as is_oversubscribed;

use learned::Spins;
use noted::SOON;
use queue_node::{Passes, QueueNode, QueueNodeRef, Told};
use waiter::{
    ENOUGH_POLLERS, HELD, LED, POLLER, POLLERS, RESERVED, ROTATES, Role, SLEEPERS, Waiter,
};

use super::link::Link;
use super::plain::{PlainLock, waits_with_deadline, without_node};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Deadline, Woken, const_new, cpu, futex, hint, order, process, time, tuning};
use crate::{LockInfo, Order};

// Times are in nanoseconds. Under loom, all are as short as possible without skipping a branch.

/// A thread that slept and waited for longer than this concludes that the owner did not run.
const LONG_WAIT: u64 = if cfg!(loom) { 0 } else { 720_000 };
/// If the clock jumps by more than this while a thread spins, the thread did not run.
const JUMP: u64 = 100_000;
/// One spin in this many measures where the lock's line comes from.
const LOOK_AT_LINE: u64 = 16;
/// If the line is near, it takes no longer to read the word and swap it. With the measurement
/// itself, it took 24 to 60 ns between hardware threads of a core, and 140 to 180 ns between cores
/// of an AMD EPYC.
const NEAR: u64 = 64;
/// How often a newcomer polls a near line before it does anything else, if waits are short.
const GLANCES: u32 = if cfg!(loom) { 1 } else { 3 };
/// Between two polls of a remote line a waiter pauses for between one and two times this long, ...
const APART: u64 = 80;
/// ... or for the usual wait divided by this, if that is longer: then many waiters together poll no
/// more often than a few do.
const LOOKS_IN_WAIT: u64 = 8;
/// A waiter starves after this long.
const PATIENCE: u64 = if cfg!(loom) { 0 } else { 10_000_000 };
/// For how long a newcomer leaves a reserved lock free: longer than a wake-up takes. After that it
/// takes the lock, whose reserving waiter may be in the parent of a fork.
const RESPECT_NS: u32 = 1_000_000;
/// Where waits are longer than this, pollers may leave a reserved lock free, so that a release
/// wakes a sleeper. Where waits are shorter, wake-ups cost more than they bring. The value is the
/// best of five from 0 to 50 us at seven simulated points with twice as many threads as CPUs.
const WAITS_WORTH_A_WAKE: u32 = 20_000;
/// After this number of hand-overs in a row the holder checks whether others wait for the word, and
/// whether it should stay.
const LOOK_UP: u32 = if cfg!(loom) { 1 } else { 64 };
/// How long the first in the queue leaves the lock to a thread that stays, ...
const STINT: u64 = if cfg!(loom) { 0 } else { 120_000 };
/// ... and how often it checks meanwhile whether that thread has left.
const LOOKS_IN_STINT: u64 = 64;

/// The lock that learns.
#[derive(Debug)]
#[repr(C)]
pub struct Adaptive {
    /// See [`waiter`].
    word: AtomicU32,
    /// What spinning has brought of late, see [`Spins`].
    spins: AtomicU32,
    /// The last in the queue.
    tail: Link<QueueNode>,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self::new()
    }
}

impl Adaptive {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { word: AtomicU32::new(0), spins: AtomicU32::new(0), tail: Link::new() }
        }
    }

    /// The node by which the calling thread holds the lock.
    #[inline]
    fn noted_qnode_ref(&self) -> Option<QueueNodeRef<'_>> {
        QueueNodeRef::noted(self.address(), &self.tail)
    }

    /// The holder's node, if the holder has one and another thread releases the lock.
    fn find_led(&self) -> Option<QueueNodeRef<'_>> {
        // Relaxed: only holders set and clear the mark.
        let is_led = self.word.load(Ordering::Relaxed) & LED != 0;
        if is_led { QueueNodeRef::find(&self.tail) } else { None }
    }

    /// Acquires the lock unless the deadline passes first; returns whether it did.
    #[cold]
    pub(super) fn wait(&self, deadline: Option<Deadline>) -> bool {
        // A thread that has a deadline has no time to wait for reservations.
        let mut waiter = Waiter { entitled: deadline.is_some(), ..Waiter::default() };
        // While others sleep, a free lock is acquired here.
        if self.try_take(&waiter) || self.glance(&waiter) {
            return true;
        }
        let start = time::now();
        if !self.queues(start) {
            return self.contend(&mut waiter, start, deadline);
        }
        let (qnode_ref, others) =
            QueueNodeRef::join(&self.tail, noted::has_left_soon_before(self.address(), start));
        if others {
            match qnode_ref.wait(deadline, JUMP) {
                Told::First => {}
                Told::Holder => {
                    qnode_ref.note(self.address());
                    return true;
                }
                Told::Nothing => {
                    return !deadline.is_some_and(|deadline| deadline.has_passed())
                        && self.contend(&mut waiter, start, deadline);
                }
            }
        }
        if scarcity::has_sign() {
            qnode_ref.make_next_first();
            return self.contend(&mut waiter, start, deadline);
        }
        waiter.role = Role::First(time::now());
        let acquired = self.contend(&mut waiter, start, deadline);
        if acquired {
            self.settle(qnode_ref)
        } else {
            qnode_ref.make_next_first()
        }
        acquired
    }

    /// Whether it is better to wait in the queue than to poll the word: where there are many CPUs,
    /// if all threads have one, and this thread has no node in another lock's queue.
    fn queues(&self, now: u64) -> bool {
        cpu::count() > tuning::few_cpus()
            && !scarcity::is_oversubscribed(now)
            && !queue_node::has_noted()
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// The first in the queue has the lock. It keeps its node if it is to hand over the lock.
    fn settle(&self, qnode_ref: QueueNodeRef<'_>) {
        if self.spins().stays() || scarcity::has_sign() {
            qnode_ref.make_next_first();
        } else if qnode_ref.keep_as_holder() {
            // Relaxed: for this thread, and for a thread that releases the lock in its stead.
            self.word.fetch_or(LED, Ordering::Relaxed);
            qnode_ref.note(self.address());
        }
    }

    /// Polls the word; returns whether it has the lock.
    fn contend(&self, waiter: &mut Waiter, start: u64, deadline: Option<Deadline>) -> bool {
        let made_room = !waiter.is_first() && scarcity::parks_voluntarily(start, self.spins());
        while (made_room && !waiter.slept) || !self.spin(waiter) {
            match self.sleep(waiter, deadline) {
                Slept::Acquired => {
                    self.update_spins(|spins| spins.and_failures(waiter.failed_spins));
                    break;
                }
                Slept::TimedOut => {
                    self.give_up(waiter);
                    return false;
                }
                Slept::Woken => {
                    // A starving waiter remains one: it ends its reservation itself.
                    let now = time::now();
                    let waited = now.wrapping_sub(start);
                    if made_room && !waiter.slept {
                        scarcity::parked_voluntarily_for(waited);
                    }
                    if waited > LONG_WAIT && !waiter.is_first() {
                        scarcity::notice(now);
                    }
                    (waiter.entitled, waiter.slept) = (true, true);
                    waiter.starving |= waited > PATIENCE;
                }
            }
        }
        true
    }

    fn spins(&self) -> Spins {
        Spins(self.spins.load(Ordering::Relaxed)) // Relaxed: steers waiting
    }

    /// Polls a few times first, if sections are so short that even reading the clock takes a
    /// noticeable time. Returns whether it acquired the lock.
    fn glance(&self, waiter: &Waiter) -> bool {
        let spins = self.spins();
        let pays = spins.are_short() && !spins.is_remote_line();
        (0..if pays { GLANCES } else { 0 }).any(|_| {
            hint::spin_loop();
            self.try_take(waiter)
        })
    }

    /// Polls for as long as that is worth the time; returns whether it acquired the lock.
    fn spin(&self, waiter: &mut Waiter) -> bool {
        if !self.may_poll(waiter) {
            return false;
        }
        let spins = self.spins();
        let start = time::now();
        let allowance = self.allowance(waiter, spins, start);
        let (mut spun, mut has_run) = (0, true);
        while !self.take_in_turn(waiter, spins) {
            if spun > allowance {
                waiter.failed_spins += 1;
                return false;
            }
            leave_alone(waiter, spins, start.wrapping_add(spun));
            let before = spun;
            spun = time::now().wrapping_sub(start);
            self.reserve_in_time(waiter, start.wrapping_add(spun));
            if spun - before > JUMP {
                scarcity::notice(start.wrapping_add(spun));
                // If the lock is free now, it was released while this thread did not run.
                waiter.failed_spins += 1;
                has_run = false;
            }
        }
        if waiter.role == Role::Poller && scarcity::rotates(start.wrapping_add(spun)) {
            // Relaxed: steers the release.
            self.word.fetch_or(ROTATES, Ordering::Relaxed);
        }
        self.learn(waiter, start, has_run.then_some(spun));
        true
    }

    /// How long to poll.
    fn allowance(&self, waiter: &Waiter, spins: Spins, start: u64) -> u64 {
        match waiter.role {
            Role::First(_) if spins.stays() => 2 * STINT,
            Role::First(_) | Role::Poller => spins.allowance(start, false),
            Role::One => spins.allowance(start, scarcity::is_oversubscribed(start)),
        }
    }

    /// Learns from a poll that ended with the lock. It took this long if the thread ran all the
    /// time.
    fn learn(&self, waiter: &Waiter, start: u64, spun: Option<u64>) {
        let line_is_near = spun.filter(|_| looks_at_line(start)).map(|spun| {
            let taken = time::ordered().wrapping_sub(start);
            taken.wrapping_sub(spun) <= NEAR
        });
        self.update_spins(|spins| {
            let mut learned = spins.and_failures(waiter.failed_spins);
            if let Some(is_near) = line_is_near {
                learned = learned.after_transfer(is_near);
            }
            // A woken thread that finds the lock free has not spun. If that counted as a spin of
            // zero length, spins would become shorter and shorter.
            let polled = spun.filter(|spun| !waiter.slept || *spun != 0);
            polled.map_or(learned, |spun| learned.and_success(spun))
        });
    }

    /// Whether few enough poll; then this one is counted, on many CPUs.
    fn may_poll(&self, waiter: &mut Waiter) -> bool {
        if waiter.role != Role::One || cpu::count() <= tuning::few_cpus() {
            return true;
        }
        // Relaxed, throughout: the count orders nothing.
        let mut word = self.word.load(Ordering::Relaxed);
        while word & POLLERS != POLLERS {
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            match self.word.compare_exchange_weak(word, word + POLLER, done, failed) {
                Ok(_) => {
                    waiter.role = Role::Poller;
                    return true;
                }
                Err(now) => word = now,
            }
        }
        false
    }

    /// If an owner has kept the lock for as long as it may, the first waiter reserves the lock.
    fn reserve_in_time(&self, waiter: &mut Waiter, now: u64) {
        if let Role::First(since) = waiter.role
            && !waiter.starving
            && now.wrapping_sub(since) > STINT
        {
            (waiter.entitled, waiter.starving) = (true, true);
            self.word.fetch_or(RESERVED, Ordering::Relaxed); // Relaxed: publishes nothing
        }
    }

    /// Acquires the lock. But the first in the queue does not take it from a thread that stays and
    /// will be back soon.
    fn take_in_turn(&self, waiter: &Waiter, spins: Spins) -> bool {
        if !waiter.is_first() || waiter.starving || !spins.stays() {
            return self.try_take(waiter);
        }
        // Relaxed: as in `try_take`.
        if !waiter.may_take(self.word.load(Ordering::Relaxed)) {
            return false;
        }
        time::delay(SOON / 2);
        let has_gone = self.try_take(waiter);
        if has_gone {
            self.update_spins(|spins| spins.and_stay(false));
        }
        has_gone
    }

    /// To be called by the lock's owner: any other thread would take the cache line from the owner.
    fn update_spins(&self, update: impl FnOnce(Spins) -> Spins) {
        let spins = self.spins();
        let learned = update(spins);
        if learned != spins {
            self.spins.store(learned.0, Ordering::Relaxed); // Relaxed: steers waiting
        }
    }

    /// Acquires the lock if it is free and this waiter may have it.
    fn try_take(&self, waiter: &Waiter) -> bool {
        // Relaxed: a hint; `take` decides and orders.
        let word = self.word.load(Ordering::Relaxed);
        waiter.may_take(word) && self.take(word, waiter)
    }

    fn take(&self, word: u32, waiter: &Waiter) -> bool {
        // Acquire: partner of the Releases in `release` and `free`. Relaxed on failure: nothing was
        // acquired.
        let acquire = order!(Acquire, "adaptive-take-acquire");
        self.word.compare_exchange(word, waiter.taken(word), acquire, Ordering::Relaxed).is_ok()
    }

    /// Marks the lock and sleeps, unless the lock turns out to be free.
    fn sleep(&self, waiter: &mut Waiter, deadline: Option<Deadline>) -> Slept {
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
            // Relaxed: a mark publishes nothing; before the sleep the kernel compares again.
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            match self.word.compare_exchange_weak(word, marked, done, failed) {
                Ok(_) => break word = marked,
                Err(now) => word = now,
            }
        }
        if waiter.role == Role::Poller {
            waiter.role = Role::One; // the mark counts it no more
        }
        match futex::wait(&self.word, word, deadline) {
            Woken::TimedOut => Slept::TimedOut,
            Woken::Perhaps => Slept::Woken,
        }
    }

    /// For a while, does not take a lock that is free but reserved.
    fn respect(&self, word: u32) {
        hint::sleep(RESPECT_NS);
        // Still free and reserved: the thread that reserved it has left, or will reserve it again.
        // Relaxed, both: nothing is published.
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        _ = self.word.compare_exchange(word, word & !RESERVED, done, failed);
    }

    /// Leaves without the lock, and without the reservation.
    fn give_up(&self, waiter: &Waiter) {
        // Relaxed: nothing is published.
        if waiter.starving && self.word.fetch_and(!RESERVED, Ordering::Relaxed) & HELD == 0 {
            // The release that left the lock free may have woken only this thread.
            futex::wake(&raw const self.word, 1);
        }
    }

    /// Releases a lock that is marked, or whose holder has a node in the queue.
    #[cold]
    fn release_contended(&self, noted: Option<QueueNodeRef<'_>>) {
        if let Some(qnode_ref) = noted {
            noted::note_leaving(self.address());
            return self.release_from(qnode_ref);
        }
        match self.find_led() {
            Some(qnode_ref) => self.release_from(qnode_ref),
            None => self.free(),
        }
    }

    /// Releases the lock as the holder that has this node.
    fn release_from(&self, qnode_ref: QueueNodeRef<'_>) {
        let Passes { passes, soon } = qnode_ref.passes();
        let mut next = Passes { passes: passes + 1, soon };
        let mut frees = scarcity::has_sign();
        if next.passes >= LOOK_UP {
            let stays = soon > LOOK_UP / 2;
            if stays {
                self.update_spins(|spins| spins.and_stay(true));
            }
            // Relaxed: a hint.
            frees |= stays || self.word.load(Ordering::Relaxed) & (SLEEPERS | RESERVED) != 0;
            next = Passes { passes: 0, soon: 0 };
        }
        if frees {
            qnode_ref.make_next_first();
        } else if qnode_ref.hand_over(&next) {
            return;
        }
        self.free();
    }

    /// Clears the word, and wakes one thread that sleeps on it if too few are awake.
    fn free(&self) {
        let mut word = self.word.load(Ordering::Relaxed); // Relaxed: the exchange decides
        loop {
            // In a forked process, some of the pollers that were counted may be its parent's.
            let few_poll = word & POLLERS < ENOUGH_POLLERS || process::generation() != 0;
            let reserved = word & RESERVED != 0 && self.spins().usual() > WAITS_WORTH_A_WAKE;
            let wakes = word & SLEEPERS != 0 && (few_poll || reserved || word & ROTATES != 0);
            let free = word & !(HELD | LED | ROTATES) & if wakes { !SLEEPERS } else { u32::MAX };
            // Release: partner of the Acquires in `try_acquire` and `take`.
            let release = order!(Release, "adaptive-wake-release");
            match self.word.compare_exchange_weak(word, free, release, Ordering::Relaxed) {
                Ok(_) if wakes => return futex::wake(&raw const self.word, 1),
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }
}

/// Whether a spin that began now measures where the line comes from. Some do: it takes time.
fn looks_at_line(now: u64) -> bool {
    cfg!(loom) || (now / 32).is_multiple_of(LOOK_AT_LINE)
}

/// Passes some time between two polls of the word.
fn leave_alone(waiter: &Waiter, spins: Spins, now: u64) {
    match waiter.role {
        Role::First(_) if spins.stays() && !waiter.starving => time::delay(STINT / LOOKS_IN_STINT),
        Role::One | Role::Poller if spins.is_remote_line() => {
            let apart = APART.max(u64::from(spins.usual()) / LOOKS_IN_WAIT);
            // Random, because otherwise all polls could be in the same part of a section.
            let random = now.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            time::delay(apart + random % apart);
        }
        Role::First(_) | Role::One | Role::Poller => hint::spin_loop(),
    }
}

enum Slept {
    Acquired,
    Woken,
    TimedOut,
}

// SAFETY: `HELD` is set only by a compare-and-swap from a word without it, and cleared only in a
// release that hands the lock to no thread; a hand-over is a message to one thread, by the only one
// that holds the lock. Sixteen bytes, and zero is free.
unsafe impl PlainLock for Adaptive {
    const INFO: LockInfo = LockInfo {
        name: "adaptive",
        summary: "queues, spins or sleeps by what it has learned of its waits and of the load; no thread starves",
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

    waits_with_deadline!();

    #[inline]
    unsafe fn release(&self) {
        // Release: partner of the Acquires in `try_acquire` and `take`. Relaxed otherwise: no
        // change.
        let release = order!(Release, "adaptive-release");
        let qnode_ref = self.noted_qnode_ref();
        if qnode_ref.is_some() {
            return self.release_contended(qnode_ref);
        }
        if self.word.compare_exchange(HELD, 0, release, Ordering::Relaxed).is_err() {
            self.release_contended(None);
        }
    }
}

without_node!(Adaptive);

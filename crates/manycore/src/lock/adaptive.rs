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

use core::ptr::{NonNull, null_mut};

use super::link::{Link, Linked};
use super::plain::{PlainLock, without_node};
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::sync::{
    Deadline, Woken, clock, const_new, cpu, futex, hint, node, order, process, thread, tuning,
};
use crate::{LockInfo, Order};

/// Somebody has the lock.
const HELD: u32 = 1;
/// Somebody may sleep on the word.
const SLEEPERS: u32 = 2;
/// The lock is for those who have slept. Set by a waiter that starves, and cleared when that one has the lock.
const RESERVED: u32 = 4;
/// The holder has a place in the queue, and hands the lock to the next there.
const LED: u32 = 8;
/// In a crowd on many CPUs: one that polls the word, of at most so many.
const POLLER: u32 = 16;
const POLLERS: u32 = 15 * POLLER;
/// While fewer poll, one that sleeps is woken.
const POLLERS_AWAKE: u32 = 8 * POLLER;
/// One that sleeps is to be woken although others poll.
const ROTATES: u32 = 512;
/// How often that is so.
const ROTATION: u64 = 250_000;
/// On fewer CPUs pollers are not counted.
const FEW_CPUS: u32 = 8;

/// A waiter in the queue: at first, and when it has gone to sleep.
const QUEUED: u32 = 0;
const QUEUED_ASLEEP: u32 = 1;
/// It has come to the head of the queue, from where it tries to take the word.
const FIRST: u32 = 2;
/// It has the lock.
const GRANTED: u32 = 3;
/// It has left, and its node is for whoever comes to it.
const ABANDONED: u32 = 4;

/// After so many hand-overs in a row the holder looks at the word and what was learned.
const LOOK_UP: u32 = 64;
/// Who comes back sooner, comes back soon.
const SOON: u64 = 600;
/// How long another may have the lock to itself.
const STINT: u64 = 300_000;
/// How often a waiter in the queue looks at what else there is.
const WATCH: u64 = 50_000;
/// How long a waiter in the queue looks at its place before it sleeps.
const QUEUE_SPIN: u64 = 12_000_000;

// Times are in ticks; those in parentheses hold where the counter runs at 2.5 GHz. Under loom, all is as short as it
// can be without skipping a branch.

/// One spin in this many explores.
const EXPLORE: u64 = 32;
/// Who has slept and waited for longer says that somebody did not run (720 us).
const LONG_WAIT: u64 = if cfg!(loom) { 0 } else { 1_800_000 };
/// A clock that jumps by more while a thread spins says that the thread did not run (100 us).
const JUMP: u64 = 250_000;
/// For how long a lock stays crowded after a sign of it (10 ms).
const CROWDED: u32 = if cfg!(loom) { u32::MAX } else { 250_000_000 };
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
#[derive(Debug)]
#[repr(C)]
pub struct Adaptive {
    word: AtomicU32,
    /// What spinning has brought of late, see [`Spins`].
    spins: AtomicU32,
    /// The last in the queue.
    tail: Link<Node>,
}

/// A waiter's place in the queue, or the holder's.
#[derive(Debug)]
#[repr(align(64))]
struct Node {
    next: Link<Node>,
    /// The one before it when it joined, for who looks for the holder's.
    before: AtomicPtr<Node>,
    lock: AtomicPtr<()>,
    state: AtomicU32,
    /// How often the lock has been handed over in a row, and how often to one that had come back soon.
    passes: AtomicU32,
    soon: AtomicU32,
    generation: u32,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            next: Link::new(),
            before: AtomicPtr::new(null_mut()),
            lock: AtomicPtr::new(null_mut()),
            state: AtomicU32::new(QUEUED),
            passes: AtomicU32::new(0),
            soon: AtomicU32::new(0),
            generation: process::generation(),
        }
    }
}

impl Default for Adaptive {
    fn default() -> Self {
        Self::new()
    }
}

impl Adaptive {
    const_new! {
        /// A lock that nobody holds.
        pub fn new() -> Self {
            Self {
                word: AtomicU32::new(0),
                spins: AtomicU32::new(0),
                tail: Link::new(),
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
        if self.is_crowded(start) || self.has_place() {
            return self.contend(&mut waiter, start, deadline);
        }
        let soon = self.left_soon_before(start);
        let place: NonNull<Node> = node::take();
        let this = place.as_ptr();
        // SAFETY: this thread's, until it leaves the queue.
        let node = unsafe { place.as_ref() };
        node.lock.store(self.key(), Ordering::Relaxed);
        node.soon.store(soon.into(), Ordering::Relaxed);
        if let Linked::Node(before) = self.tail.swap(this, order!(AcqRel, "adaptive-swap")) {
            node.before.store(before, Ordering::Release);
            // SAFETY: it stays until it has seen its successor.
            unsafe { (*before).next.store(this, order!(Release, "adaptive-link")) };
            match node.wait(deadline, |now| self.notice_crowd(now)) {
                GRANTED => {
                    self.note_place(this);
                    return true;
                }
                ABANDONED if deadline.is_some_and(|d| d.has_passed()) => return false,
                ABANDONED => return self.contend(&mut waiter, start, deadline),
                _ => {}
            }
        }
        waiter.first_since = Some(clock::now());
        if self.is_crowded(start) {
            self.promote_next(place);
            waiter.first_since = None;
            return self.contend(&mut waiter, start, deadline);
        }
        if !self.contend(&mut waiter, start, deadline) {
            self.promote_next(place);
            return false;
        }
        self.settle(place);
        true
    }

    /// The first in the queue has the lock: keeps its place if it is to hand over.
    fn settle(&self, place: NonNull<Node>) {
        // SAFETY: this thread's.
        let node = unsafe { place.as_ref() };
        if self.tail.clear(place.as_ptr(), node.generation, Ordering::Relaxed) {
            // SAFETY: nobody has it any more.
            return unsafe { node::give_back(place) };
        }
        if self.spins().stays() || tuning::crowd() & 1 != 0 {
            return self.promote_next(place);
        }
        self.word.fetch_or(LED, Ordering::Relaxed);
        node.passes.store(0, Ordering::Relaxed);
        node.soon.store(0, Ordering::Relaxed);
        node.state.store(GRANTED, Ordering::Relaxed);
        self.note_place(place.as_ptr());
    }

    fn key(&self) -> *mut () {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    fn note_place(&self, place: *mut Node) {
        thread::note([self.key().addr(), place.expose_provenance()]);
    }

    /// Whether the calling thread has a place in another lock's queue.
    fn has_place(&self) -> bool {
        let [lock, place] = thread::noted();
        lock != 0 && place & 1 == 0
    }

    fn left_soon_before(&self, now: u64) -> bool {
        let [lock, place] = thread::noted();
        lock == self.key().addr() && place & 1 != 0 && (now as usize).wrapping_sub(place >> 1) << 1 >> 1 < SOON as usize
    }

    /// Leaves the queue, and makes the next there the first.
    fn promote_next(&self, place: NonNull<Node>) {
        // SAFETY: this thread's, at the head of the queue.
        unsafe {
            if let Some(next) = place.as_ref().successor(&self.tail) {
                self.tell(next, FIRST, 0, 0);
            }
            node::give_back(place);
        }
    }

    /// Tells the next in the queue, or if it has left, the one behind it.
    unsafe fn tell(&self, mut next: *mut Node, message: u32, passes: u32, soon: u32) {
        loop {
            // SAFETY: it waits until it is told.
            let node = unsafe { &*next };
            if message == GRANTED {
                node.passes.store(passes, Ordering::Relaxed);
                node.soon.store(soon + node.soon.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            let state = &raw const node.state;
            let before = unsafe { (*state).swap(message, order!(AcqRel, "adaptive-tell")) };
            if before == QUEUED_ASLEEP {
                futex::wake(state, 1);
            }
            if before != ABANDONED {
                return;
            }
            node.state.store(ABANDONED, Ordering::Relaxed);
            let after = unsafe { node.successor(&self.tail) };
            unsafe { node::give_back(NonNull::new_unchecked(next)) };
            let Some(after) = after else {
                if message == GRANTED {
                    self.free();
                }
                return;
            };
            next = after;
        }
    }

    /// Releases the lock by the holder's place in the queue.
    #[cold]
    fn release_at(&self, place: NonNull<Node>) {
        thread::note([self.key().addr(), (clock::now() as usize) << 1 | 1]);
        self.pass_on(place);
    }

    fn pass_on(&self, place: NonNull<Node>) {
        // SAFETY: the holder's.
        let node = unsafe { place.as_ref() };
        let passes = node.passes.load(Ordering::Relaxed) + 1;
        let soon = node.soon.load(Ordering::Relaxed);
        let Some(next) = (unsafe { node.successor(&self.tail) }) else {
            unsafe { node::give_back(place) };
            return self.free();
        };
        let mut to_all = tuning::crowd() & 1 != 0;
        if passes.is_multiple_of(LOOK_UP) {
            let stays = soon > LOOK_UP / 2;
            if stays {
                self.update_spins(|spins| spins.and_stay(true));
            }
            to_all |= stays || self.word.load(Ordering::Relaxed) & (SLEEPERS | RESERVED) != 0;
        }
        unsafe {
            if to_all {
                self.tell(next, FIRST, 0, 0);
            } else {
                let (passes, soon) = if passes.is_multiple_of(LOOK_UP) { (0, 0) } else { (passes, soon) };
                self.tell(next, GRANTED, passes, soon);
            }
            node::give_back(place);
        }
        if to_all {
            self.free();
        }
    }

    /// Frees the word.
    fn free(&self) {
        // Release: partner of the Acquires in `try_acquire` and `take`.
        let release = order!(Release, "adaptive-wake-release");
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            // Who polls is awake.
            let wakes = word & SLEEPERS != 0 && (word & POLLERS < POLLERS_AWAKE || word & ROTATES != 0);
            let kept = RESERVED | POLLERS | if wakes { 0 } else { SLEEPERS };
            match self.word.compare_exchange_weak(word, word & kept, release, Ordering::Relaxed) {
                Ok(_) if wakes => return futex::wake(&raw const self.word, 1),
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// The holder's place, for who has not noted it.
    fn find_place(&self) -> Option<NonNull<Node>> {
        let Linked::Node(mut node) = self.tail.load(Ordering::Acquire) else { return None };
        loop {
            // SAFETY: those behind the holder's place stay as long as the lock is held.
            let this = unsafe { &*node };
            if this.state.load(Ordering::Acquire) == GRANTED {
                return NonNull::new(node);
            }
            node = loop {
                let before = this.before.load(Ordering::Acquire);
                if !before.is_null() {
                    break before;
                }
                hint::spin_loop();
            };
        }
    }

    /// Waits as the first in the queue, or in a crowd, as one of many; says whether it has the lock or the deadline has passed.
    fn contend(&self, waiter: &mut Waiter, start: u64, deadline: Option<Deadline>) -> bool {
        let made_room = waiter.first_since.is_none() && self.makes_room(start);
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
                    // Once starving, always: who reserved the lock is who takes the reservation back.
                    let now = clock::now();
                    let waited = now.wrapping_sub(start);
                    if made_room && !waiter.slept {
                        self.update_crowd(|crowd| crowd.with_room_made_for(waited));
                    }
                    if waited > LONG_WAIT && waiter.first_since.is_none() {
                        self.notice_crowd(now);
                    }
                    waiter.entitled = true;
                    waiter.slept = true;
                    waiter.starving |= waited > PATIENCE;
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
        if !self.may_poll(waiter) {
            return false;
        }
        let spins = self.spins();
        let start = clock::now();
        let allowance = spins.allowance(explores(start), self.is_crowded(start) && !waiter.polls);
        let mut spun = 0;
        while !self.try_take_staying(waiter, spins) {
            if spun > allowance && !(waiter.starving && waiter.first_since.is_some()) {
                waiter.failed_spins += 1;
                return false;
            }
            if waiter.first_since.is_some() && spins.stays() && !waiter.starving {
                hint::delay(STINT / 64);
            } else if waiter.first_since.is_none() && spins.lines_come_from_afar() {
                leave_alone(start.wrapping_add(spun), u64::from(spins.usual()));
            } else {
                hint::spin_loop();
            }
            let before = spun;
            spun = clock::now().wrapping_sub(start);
            if let Some(since) = waiter.first_since
                && !waiter.starving
                && start.wrapping_add(spun).wrapping_sub(since) > STINT
            {
                // Relaxed: publishes nothing.
                self.word.fetch_or(RESERVED, Ordering::Relaxed);
                waiter.starving = true;
                waiter.entitled = true;
            }
            if spun - before > JUMP {
                self.notice_crowd(start.wrapping_add(spun));
            }
        }
        if waiter.polled {
            self.rotate(start.wrapping_add(spun));
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

    /// Whether there are few enough that poll.
    fn may_poll(&self, waiter: &mut Waiter) -> bool {
        if waiter.polls || waiter.first_since.is_some() || cpu::count() <= FEW_CPUS {
            return true;
        }
        let mut word = self.word.load(Ordering::Relaxed);
        while word & POLLERS != POLLERS {
            let more = word + POLLER;
            match self.word.compare_exchange_weak(word, more, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    waiter.polls = true;
                    waiter.polled = true;
                    return true;
                }
                Err(now) => word = now,
            }
        }
        false
    }

    /// Has one of those that sleep woken, now and then.
    fn rotate(&self, now: u64) {
        if Turn(tuning::turn()).since(now) > ROTATION {
            tuning::set_turn(Turn::new(now, cpu::here()).0);
            self.word.fetch_or(ROTATES, Ordering::Relaxed);
        }
    }

    /// Takes the lock, but not from one that is about to come back.
    fn try_take_staying(&self, waiter: &Waiter, spins: Spins) -> bool {
        if waiter.first_since.is_none() || waiter.starving || !spins.stays() {
            return self.try_take(waiter);
        }
        if !waiter.may_take(self.word.load(Ordering::Relaxed)) {
            return false;
        }
        hint::delay(SOON / 2);
        self.try_take(waiter) && {
            self.update_spins(|spins| spins.and_stay(false));
            true
        }
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
        Crowd(tuning::crowd())
    }

    fn update_crowd(&self, update: impl FnOnce(Crowd) -> Crowd) {
        // Relaxed: steers waiting. Of two updates at the same time one may be lost.
        tuning::set_crowd(update(self.crowd()).0);
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
        let last = Turn(tuning::turn());
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
            tuning::set_turn(Turn::new(now, cpu).0);
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
            // Relaxed: a mark publishes nothing; the kernel compares the word again before the sleep.
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            match self.word.compare_exchange_weak(word, marked, done, failed) {
                Ok(_) => {
                    waiter.polls = false;
                    break word = marked;
                }
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
        // Relaxed: only the holder sets or clears the mark.
        if self.word.load(Ordering::Relaxed) & LED != 0 {
            match self.find_place() {
                Some(place) => return self.pass_on(place),
                None => return self.free(),
            }
        }
        self.free();
    }
}

impl Node {
    /// Waits to be told, for the deadline, or until there is a crowd: then it is better to leave, since who is before it may not run.
    fn wait(&self, deadline: Option<Deadline>, notice_crowd: impl Fn(u64)) -> u32 {
        let start = clock::now();
        let mut last = start;
        loop {
            loop {
                let state = self.state.load(order!(Acquire, "adaptive-queue-spin"));
                if state >= FIRST {
                    return state;
                }
                if clock::has_passed(last, WATCH) {
                    break;
                }
                hint::spin_loop();
            }
            let now = clock::now();
            if now.wrapping_sub(last) > WATCH + JUMP {
                notice_crowd(now);
            }
            last = now;
            if tuning::crowd() & 1 != 0 || deadline.is_some_and(|d| d.has_passed()) {
                return self.abandon(QUEUED);
            }
            if now.wrapping_sub(start) > QUEUE_SPIN {
                return self.sleep(deadline);
            }
        }
    }

    /// Leaves the queue unless it has been told something.
    fn abandon(&self, state: u32) -> u32 {
        let (left, told) = (order!(Release, "adaptive-abandon"), Ordering::Acquire);
        let left = self.state.compare_exchange(state, ABANDONED, left, told);
        left.map_or_else(|state| state, |_| ABANDONED)
    }

    #[cold]
    fn sleep(&self, deadline: Option<Deadline>) -> u32 {
        let told = order!(Acquire, "adaptive-queue-sleep");
        if let Err(state) = self.state.compare_exchange(QUEUED, QUEUED_ASLEEP, Ordering::Relaxed, told)
        {
            return state;
        }
        loop {
            let state = self.state.load(order!(Acquire, "adaptive-queue-woken"));
            if state >= FIRST {
                return state;
            }
            if futex::wait(&self.state, QUEUED_ASLEEP, deadline) == Woken::TimedOut {
                return self.abandon(QUEUED_ASLEEP);
            }
        }
    }

    /// The next in the queue; none if there is none, and then the queue is empty.
    unsafe fn successor(&self, tail: &Link<Node>) -> Option<*mut Node> {
        loop {
            if let Linked::Node(next) = self.next.load(order!(Acquire, "adaptive-next")) {
                return Some(next);
            }
            let this = core::ptr::from_ref(self).cast_mut();
            let release = order!(Release, "adaptive-empty");
            if tail.clear(this, self.generation, release)
                || self.generation != process::generation() && tail.clear_ghost(release)
            {
                return None;
            }
            hint::spin_loop();
        }
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
    /// It is counted among those that poll.
    polls: bool,
    polled: bool,
    /// Since when it is the first in the queue, if it is.
    first_since: Option<u64>,
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
        HELD | others | reserved | self.other_pollers(word)
    }

    /// The word when this waiter is about to sleep.
    fn marked(&self, word: u32) -> u32 {
        word & !POLLERS | self.other_pollers(word) | SLEEPERS | if self.starving { RESERVED } else { 0 }
    }

    fn other_pollers(&self, word: u32) -> u32 {
        (word & POLLERS) - if self.polls { POLLER } else { 0 }
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
        let [lock, place] = thread::noted();
        if lock == self.key().addr() && place & 1 == 0 {
            let place = core::ptr::with_exposed_provenance_mut(place);
            // SAFETY: as above.
            return self.release_at(unsafe { NonNull::new_unchecked(place) });
        }
        if self.word.compare_exchange(HELD, 0, release, Ordering::Relaxed).is_err() {
            self.release_to_waiters();
        }
    }
}

without_node!(Adaptive);

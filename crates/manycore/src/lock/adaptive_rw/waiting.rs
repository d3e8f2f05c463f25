//! Waiting, and admitting waiters.

use super::{
    AdaptiveRw, BIASED, DOUBT, DOUBT_UNIT, DRAIN, DRAIN_SHIFT, DRAIN_UNIT, EVENT, EVENTS,
    GENERATION, MENDING, PENDING, QUEUED, READER, READERS, SAMPLES, SLEEPERS, TRUST, TRUST_UNIT,
    WRITER, generation, stops, wake_all,
};
use crate::lock::adaptive::is_oversubscribed;
use crate::lock::{PlainLock, Preference};
use crate::sync::atomic::Ordering;
use crate::sync::{Deadline, Woken, clock, cpu, futex, hint, order, store_load, time, tuning};

/// If a bias has ended this often, further ends are not counted.
const MOST_DOUBT: u64 = 12 * DOUBT_UNIT;
/// What counting would cost the reads between two samples, in the unit of the cost of a drain,
/// which is 400 ns.
const READS_A_SAMPLE: u64 = 16 * 4;
/// How long a thread polls before it sleeps where there are many CPUs, and enough of them, in ns.
const LONG: u64 = if cfg!(loom) { 0 } else { 1_000_000 };
/// How long a writer waits before it stops readers, in ns.
const GLANCE: u64 = if cfg!(loom) { 0 } else { 1_000 };
/// How long a reader that may pass a waiting writer lets the writer go first, in ns.
const COURTESY: u64 = if cfg!(loom) { 0 } else { 4_000 };

/// How long to poll before a sleep, in ns.
fn patience() -> u64 {
    if has_many_cpus() && !is_oversubscribed() {
        LONG
    } else {
        clock::nanoseconds(tuning::spin_limit())
    }
}

/// Whether there are enough CPUs that a thread probably has one. Then readers that may pass a
/// waiting writer let it go first for a moment. With few CPUs the writer may not run, or may wait
/// for a thread that does not run.
pub(super) fn has_many_cpus() -> bool {
    cpu::count() > tuning::few_cpus()
}

impl AdaptiveRw {
    #[cold]
    pub(super) fn wait_to_read(&self, preference: Preference, deadline: Option<Deadline>) -> bool {
        self.mend();
        let mut woken = 0;
        loop {
            if self.poll_to_read(preference) {
                return true;
            }
            // Relaxed, throughout: nothing is acquired here.
            let state = self.state.load(Ordering::Relaxed);
            if !stops(state, preference) {
                continue;
            }
            if woken >= tuning::lenience() && self.change(counted).is_some() {
                return self.wait_counted(deadline);
            }
            if self.sleep(state, deadline) == Woken::TimedOut {
                return false;
            }
            woken += 1;
        }
    }

    /// Polls until a reader may enter, for as long as polling is worth the time; returns whether
    /// the reader has entered.
    fn poll_to_read(&self, preference: Preference) -> bool {
        let (start, patience) = (time::now(), patience());
        // A thread that reads already, or may do so, must not let a writer go first that waits for
        // it.
        let polite = has_many_cpus() && !self.marks().may_have_own();
        let polite = if polite { COURTESY } else { 0 };
        loop {
            let state = self.state.load(Ordering::Relaxed); // Relaxed: a hint
            if !stops(state, Preference::Phases) && self.enter() {
                return true;
            }
            if !stops(state, preference)
                && time::has_passed(start, polite)
                && self.count_in(preference)
            {
                return true;
            }
            if state & (WRITER | BIASED) == WRITER {
                match self.count_in_advance(preference) {
                    Some(true) => return self.poll_counted(start, patience),
                    Some(false) => return true,
                    None => {}
                }
            }
            if time::has_passed(start, patience) {
                return false;
            }
            hint::spin_loop();
        }
    }

    /// Counts a reader although a writer may hold the lock; returns whether the reader has entered.
    /// None if the reader may not be counted.
    fn count_in_advance(&self, preference: Preference) -> Option<bool> {
        // Acquire: partner of the Release with which a writer leaves, for a thread that finds none.
        let before = self.state.fetch_add(READER, order!(Acquire, "adaptive-rw-advance"));
        let has_writer = before & WRITER != 0;
        if !has_writer && stops(before, preference) {
            self.count_out();
            return None;
        }
        Some(has_writer)
    }

    /// Polls, while counted, until the writer that holds the lock leaves, and then returns true.
    /// After a long wait the thread is no longer counted.
    fn poll_counted(&self, start: u64, patience: u64) -> bool {
        loop {
            // Acquire: partner of the Release in `free`.
            if self.state.load(order!(Acquire, "adaptive-rw-counted")) & WRITER == 0 {
                return true;
            }
            if time::has_passed(start, patience) && self.change(uncounted).is_some() {
                return false;
            }
            hint::spin_loop();
        }
    }

    /// Waits, counted, until the writer that holds the lock leaves.
    fn wait_counted(&self, deadline: Option<Deadline>) -> bool {
        loop {
            // Acquire: partner of the Release in `free`.
            let state = self.state.load(order!(Acquire, "adaptive-rw-insist"));
            if state & WRITER == 0 {
                return true;
            }
            let timed_out = self.sleep(state, deadline) == Woken::TimedOut;
            if timed_out && self.change(uncounted).is_some() {
                return false;
            }
        }
    }

    /// Sleeps while the lower half of the word is unchanged.
    fn sleep(&self, state: u64, deadline: Option<Deadline>) -> Woken {
        let marked = state | SLEEPERS;
        // Relaxed, both: a mark publishes nothing; the kernel compares the word before the sleep.
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.state.compare_exchange(state, marked, done, failed).is_err() {
            return Woken::Perhaps;
        }
        futex::wait_low(&self.state, marked as u32, deadline)
    }

    /// Moves to the next state if there is one; returns the old state.
    fn change(&self, next: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        // Relaxed, all: for changes that let no thread in.
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            match self.state.compare_exchange(state, next(state)?, done, failed) {
                Ok(_) => return Some(state),
                Err(now) => state = now,
            }
        }
    }

    #[cold]
    pub(super) fn wait_to_write(&self, deadline: Option<Deadline>) -> bool {
        self.mend();
        if self.poll_to_write() {
            return true;
        }
        let waits = self.queue.looks_held() || !self.queue.try_acquire();
        if waits && !self.queue.wait(deadline) {
            return false;
        }
        if self.queue.row().is_some_and(|row| row > 0) {
            return true; // handed over, with the lock
        }
        let acquired = self.lead(waits, deadline);
        if !acquired {
            // SAFETY: this writer has acquired the queue above, and has not left it.
            unsafe { self.queue.end_row() };
        }
        acquired
    }

    /// Polls for a moment if no writer waits, but does not stop readers, because that costs more.
    /// Returns whether it has the lock.
    fn poll_to_write(&self) -> bool {
        let start = time::now();
        loop {
            // Relaxed: a hint.
            let is_biased = self.state.load(Ordering::Relaxed) & BIASED != 0;
            if is_biased || self.queue.looks_held() || time::has_passed(start, GLANCE) {
                return false;
            }
            if self.take() {
                return true;
            }
            hint::spin_loop();
        }
    }

    /// As the first in the queue, acquires the lock unless the deadline passes first.
    fn lead(&self, waited: bool, deadline: Option<Deadline>) -> bool {
        if waited {
            self.leave_to_readers();
        }
        let start = time::now();
        let patience = patience();
        if self.stop_readers() && !self.marks().wait(patience, deadline) {
            self.let_readers_in();
            return false;
        }
        loop {
            let state = self.state.load(Ordering::Relaxed); // Relaxed: the exchange decides
            if state & (WRITER | READERS) == 0 {
                let took = time::now().wrapping_sub(start);
                if self.take_as_first(state, after_drain(state, took)) {
                    return true;
                }
            } else if !time::has_passed(start, patience) {
                hint::spin_loop();
            } else if self.sleep(state, deadline) == Woken::TimedOut {
                self.let_readers_in();
                return false;
            }
        }
    }

    /// As the first in the queue, takes the lock if it is free; returns whether it did.
    fn take_as_first(&self, state: u64, learned: u64) -> bool {
        let taken = learned & !(PENDING | EVENTS) | WRITER | QUEUED;
        // Acquire: partner of the Releases in `count_out` and `release_write`. Relaxed on failure.
        let (acquire, failed) = (order!(Acquire, "adaptive-rw-lead-acquire"), Ordering::Relaxed);
        self.state.compare_exchange(state, taken, acquire, failed).is_ok()
    }

    /// Leaves the lock to readers for as long as it recently took until they had left.
    fn leave_to_readers(&self) {
        let state = self.state.load(Ordering::Relaxed); // Relaxed: steers waiting
        if state & BIASED != 0 {
            time::delay(((state & DRAIN) >> DRAIN_SHIFT) * DRAIN_UNIT);
        }
    }

    /// Makes new readers wait; returns whether there may be marks.
    fn stop_readers(&self) -> bool {
        // SeqCst: partner of the load in `mark`.
        let before = self.state.fetch_or(PENDING, Ordering::SeqCst);
        store_load!("adaptive-rw-stop");
        before & BIASED != 0
    }

    /// Ends [`stop_readers`](Self::stop_readers) without the lock.
    fn let_readers_in(&self) {
        // Relaxed: nothing is published.
        let before = self.state.fetch_and(!(PENDING | SLEEPERS), Ordering::Relaxed);
        wake_all(&raw const self.state, before);
    }

    /// Acquires a biased lock for writing if no thread reads.
    #[cold]
    pub(super) fn try_write_biased(&self) -> bool {
        // Relaxed: a hint.
        if self.state.load(Ordering::Relaxed) & (WRITER | PENDING | READERS) != 0 {
            return false;
        }
        self.mend();
        if !self.queue.try_acquire() {
            return false;
        }
        self.stop_readers();
        let state = self.state.load(Ordering::Relaxed); // Relaxed: the exchange decides
        let acquired = state & (WRITER | READERS) == 0
            && self.marks().are_gone()
            && self.take_as_first(state, state);
        if !acquired {
            self.let_readers_in();
            // SAFETY: `try_acquire` has acquired the queue for this writer, which has not left it.
            unsafe { self.queue.end_row() };
        }
        acquired
    }

    /// Releases the lock after writing where others wait, or this writer has waited.
    #[cold]
    pub(super) fn release_contended(&self) {
        // Relaxed: only the writer changes it.
        if self.state.load(Ordering::Relaxed) & QUEUED != 0 {
            // SAFETY: the writer holds the queue. Before the word is free: then the lock may be
            // gone.
            unsafe { self.queue.end_row() };
        }
        self.free();
    }

    fn free(&self) {
        let address = &raw const self.state;
        let state = self.state.load(Ordering::Relaxed); // Relaxed: only a fork makes it another's
        if state & READERS != 0 && state & GENERATION != generation() {
            self.mend(); // readers that counted themselves meanwhile do not exist here
        }
        // Release: partner of the Acquires in `count_in`, `take`, `lead` and `poll_counted`.
        let before = self
            .state
            .fetch_and(!(WRITER | QUEUED | SLEEPERS), order!(Release, "adaptive-rw-free"));
        wake_all(address, before);
    }

    /// Releases a reader's hold for which there is no mark of this thread and no count: another
    /// thread has left the mark.
    #[cold]
    pub(super) fn release_elsewhere(&self) {
        while !self.marks().take_anywhere() && !self.try_count_out() {
            hint::spin_loop(); // others have taken what was found, and left theirs
        }
    }

    /// Called before a thread waits: in the child of a fork, forgets the readers and writers that
    /// do not exist there.
    fn mend(&self) {
        let generation = generation();
        loop {
            // Acquire: partner of the Release below.
            let state = self.state.load(Ordering::Acquire);
            if state & MENDING != 0 {
                hint::spin_loop();
                continue;
            }
            if state & GENERATION == generation {
                return;
            }
            // If there is a writer, it holds the queue; or it waited in the parent.
            let mends = if state & QUEUED == 0 { MENDING } else { 0 };
            let counts = if state & WRITER != 0 { state & !READERS } else { state };
            let mended = counts & !(GENERATION | PENDING) | generation | mends;
            // Acquire: partner of the Release below, of another thread. Relaxed on failure: the
            // loop reads the word again.
            let (acquire, failed) = (Ordering::Acquire, Ordering::Relaxed);
            if self.state.compare_exchange(state, mended, acquire, failed).is_ok() && mends != 0 {
                // SAFETY: no thread enters it while the lock is being mended.
                unsafe { self.queue.forget_all() };
                // Release: partner of the Acquire above.
                self.state.fetch_and(!MENDING, Ordering::Release);
            }
        }
    }
}

/// After a reader has counted itself while a writer holds the lock.
fn counted(state: u64) -> Option<u64> {
    (state & WRITER != 0).then_some(state + READER)
}

/// After it has changed its mind.
fn uncounted(state: u64) -> Option<u64> {
    (state & WRITER != 0).then_some(state - READER)
}

/// What the lock learns when it took this long until readers had left. If fewer readers came than
/// could have counted in that time, the bias was not worth its cost.
fn after_drain(state: u64, took: u64) -> u64 {
    if state & BIASED == 0 {
        return state;
    }
    let took = (took / DRAIN_UNIT).min(DRAIN >> DRAIN_SHIFT);
    let reads = (state & EVENTS) / EVENT * READS_A_SAMPLE;
    let learned = state & !DRAIN | took << DRAIN_SHIFT;
    let trust = state & TRUST;
    if reads >= took || state & EVENTS >= SAMPLES {
        if trust == TRUST { learned & !DOUBT } else { learned + TRUST_UNIT }
    } else if trust > 0 {
        learned - TRUST_UNIT
    } else {
        let doubt = if state & DOUBT < MOST_DOUBT { DOUBT_UNIT } else { 0 };
        (learned & !(BIASED | TRUST)) + doubt
    }
}

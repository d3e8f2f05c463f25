//! Waiting for a turn, and whose turn is next.
//!
//! A waiting thread first sets its flag in the state, with the chain locked, and then adds itself
//! to the chain. Once the flag is set, no thread can release the lock without locking the chain, so
//! that this order is safe.

use super::{
    CONTENDED, GENERATION, LOCKED, PhaseRw, READER, READERS_WAIT, SOMEBODY_WAITS, WOKEN, WRITER,
    WRITERS_WAIT, reading, writing,
};
use crate::lock::Preference;
use crate::lock::waiter::Waiter;
use crate::lock::waiter::chain::{Batch, End, Locked};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Deadline, futex, hint, order, process, tuning};

/// What a waiter waits for.
const TO_READ: usize = 0;
const TO_WRITE: usize = 1;
/// To write; other writers must not overtake again.
const INSISTS: usize = 2;

/// A message to a waiter: it may try to write, ...
const TRY: u32 = 0;
/// ... or that it holds the lock.
const HOLDS: u32 = 1;

impl PhaseRw {
    #[cold]
    pub(super) fn wait_to_read(&self, preference: Preference, deadline: Option<Deadline>) -> bool {
        if spin(|| self.try_read(preference)) {
            return true;
        }
        let waiter = Waiter::with_role(TO_READ);
        let next = |state| reading(state, preference).ok_or(state | READERS_WAIT);
        // SAFETY: the waiter is new, and goes out of scope after it was marked, or was removed
        // below.
        if unsafe { self.enlist(&waiter, next, End::Tail) } {
            return true;
        }
        if waiter.park(deadline) || !waiter.leave() {
            return true; // readers are only ever told that they hold the lock
        }
        let chain = self.lock_chain();
        // SAFETY: `enlist` has put the waiter on the chain, and `leave` came before any claim, so
        // that no other thread takes it off.
        unsafe { chain.remove(&waiter) };
        self.unlock_chain();
        false
    }

    #[cold]
    pub(super) fn wait_to_write(&self, deadline: Option<Deadline>) -> bool {
        // First to the tail of the chain. After a failed attempt, during which WOKEN belongs to
        // this thread, to the head.
        let mut end = End::Tail;
        let mut woken = 0;
        let mut overtaken = 0;
        loop {
            if spin(|| self.try_write_as(woken)) {
                return true;
            }
            let waiter =
                Waiter::with_role(if overtaken < tuning::lenience() { TO_WRITE } else { INSISTS });
            let next = |state| writing(state, woken).ok_or((state | WRITERS_WAIT) & !woken);
            // SAFETY: the waiter is new, and goes out of scope after it was marked, or was removed
            // below.
            if unsafe { self.enlist(&waiter, next, end) } {
                return true;
            }
            if !waiter.park(deadline) && waiter.leave() {
                let chain = self.lock_chain();
                // SAFETY: `enlist` has put the waiter on the chain, and `leave` came before any
                // claim, so that no other thread takes it off.
                unsafe { chain.remove(&waiter) };
                self.pass_on(&chain, 0);
                return false;
            }
            if waiter.message() == HOLDS {
                return true;
            }
            (end, woken) = (End::Head, WOKEN);
            overtaken += 1;
        }
    }

    /// Adds a waiter to the chain, unless the lock can be acquired now; returns whether the caller
    /// holds the lock.
    ///
    /// `next` is the state with the lock taken or, as an error, the state with the flag for the
    /// caller.
    ///
    /// # Safety
    ///
    /// The waiter is new. It does not move before it was marked or the caller has removed it from
    /// the chain.
    unsafe fn enlist(
        &self,
        waiter: &Waiter,
        next: impl Fn(u64) -> Result<u64, u64>,
        end: End,
    ) -> bool {
        let chain = self.lock_chain();
        // Relaxed, here and on failure: the compare-and-swap decides and orders.
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let (wanted, taken) = match next(state) {
                Ok(taken) => (taken & !(LOCKED | CONTENDED), true),
                Err(flagged) => (flagged, false),
            };
            // AcqRel: Acquire, partner of the Releases in `release_read` and `release_write` and
            // of the
            // AcqRel in `pass_on`;
            // Release, partner of the Acquire in `lock_chain`, for the chain.
            let order = order!(AcqRel, "rw-enlist-acqrel");
            match self.state.compare_exchange(state, wanted, order, Ordering::Relaxed) {
                Ok(_) if taken => {
                    wake_for_chain(&raw const self.state, state);
                    return true;
                }
                Ok(_) => break,
                Err(changed) => state = changed,
            }
        }
        // SAFETY: the waiter is new, and stays until it is marked or removed (contract of this
        // function).
        unsafe { chain.push(waiter, end) };
        self.unlock_chain();
        false
    }

    /// Releases the caller's hold (`READER`, `WRITER` or 0), hands the lock over to the next in
    /// order, and unlocks the chain. After that the lock's memory may be freed at any time.
    #[cold]
    pub(super) fn pass_on(&self, chain: &Locked<'_>, held: u64) {
        // Relaxed, here and on failure: the compare-and-swap decides and orders.
        let mut state = self.state.load(Ordering::Relaxed);
        let address = &raw const self.state;
        let mut handoff = Handoff::NONE;
        let message = loop {
            if handoff.batch.role().is_none() {
                // Read again after each change: the caller may have become the last reader to
                // leave.
                handoff = Handoff::choose(chain, state - held, held == WRITER);
            }
            let rest = (state - held) & !(handoff.flags_to_clear | LOCKED | CONTENDED);
            debug_assert!(
                handoff.batch.role() != Some(TO_READ) || rest & WRITER == 0,
                "see `Handoff::choose`"
            );
            let (next, message) = match handoff.batch.role() {
                None => (rest, TRY),
                Some(TO_READ) => (rest + u64::from(handoff.batch.len) * READER, HOLDS),
                Some(INSISTS) if rest < READER && rest & WRITER == 0 => (rest | WRITER, HOLDS),
                Some(_) => (rest | WOKEN, TRY),
            };
            // AcqRel. Release: partner of the Acquires in `try_read`, `try_write` and `lock_chain`.
            // Acquire: partner of the Release in `release_read`. Readers may have entered and left
            // since the chain was locked, and the writer to which the lock is handed has to see
            // what they did.
            let order = order!(AcqRel, "rw-pass-acqrel");
            match self.state.compare_exchange(state, next, order, Ordering::Relaxed) {
                Ok(_) => break message,
                Err(changed) => state = changed,
            }
        };
        wake_for_chain(address, state);
        // SAFETY: `take_first` and `take_all` have claimed the waiters and taken them off; the
        // compare-and-swap has unlocked the chain.
        unsafe { handoff.batch.mark(message) };
    }

    pub(super) fn lock_chain(&self) -> Locked<'_> {
        let generation = u64::from(process::generation()) << 8 & GENERATION;
        let mut taken = LOCKED;
        // Relaxed, here and on failure: the compare-and-swap decides and orders.
        let mut state = self.state.load(Ordering::Relaxed);
        let stale = loop {
            let stale = state & GENERATION != generation;
            if !stale && state & LOCKED != 0 {
                state = self.sleep_until_unlocked(state);
                taken = LOCKED | CONTENDED; // others may sleep on
                continue;
            }
            // In the child of a fork, waiters and a thread that has locked the chain do not exist.
            let void = if stale { GENERATION | SOMEBODY_WAITS | WOKEN | CONTENDED } else { 0 };
            let locked = state & !void | generation | taken;
            // Acquire: partner of the Release in `unlock_chain`, and of the AcqRel in `enlist` and
            // `pass_on`. It is also a partner of the Release in `release_read`, for the thread to
            // which the lock will be handed.
            let acquire = order!(Acquire, "rw-chain-acquire");
            match self.state.compare_exchange(state, locked, acquire, Ordering::Relaxed) {
                Ok(_) => break stale,
                Err(changed) => state = changed,
            }
        };
        // SAFETY: the compare-and-swap has just set `LOCKED`, which this thread keeps until it
        // unlocks the chain.
        let chain = unsafe { self.chain.locked() };
        if stale {
            chain.clear();
        }
        chain
    }

    /// Sleeps while the state says that the chain is locked and contended; returns the new state.
    #[cold]
    fn sleep_until_unlocked(&self, state: u64) -> u64 {
        let contended = state | CONTENDED;
        // Relaxed, all three: nothing is acquired here.
        let marked =
            self.state.compare_exchange(state, contended, Ordering::Relaxed, Ordering::Relaxed);
        if let Err(changed) = marked {
            return changed;
        }
        futex::wait_low(&self.state, contended as u32, None);
        self.state.load(Ordering::Relaxed)
    }

    fn unlock_chain(&self) {
        let address = &raw const self.state;
        // Release: partner of the Acquire in `lock_chain`.
        let release = order!(Release, "rw-chain-release");
        let before = self.state.fetch_and(!(LOCKED | CONTENDED), release);
        wake_for_chain(address, before);
    }
}

/// After the chain of a lock was unlocked; the lock's memory may have been freed.
fn wake_for_chain(lock: *const AtomicU64, before: u64) {
    if before & CONTENDED != 0 {
        futex::wake_low(lock, 1);
    }
}

/// The waiters that go on, removed from the chain; and the flags that no longer apply.
struct Handoff {
    batch: Batch,
    flags_to_clear: u64,
}

impl Handoff {
    const NONE: Self = Self { batch: Batch::NONE, flags_to_clear: 0 };

    /// Chooses the waiters when a writer (`after_writer`), a reader or a waiter leaves the lock in
    /// the state `rest`.
    ///
    /// No writer can come before the readers that are chosen here have been counted. If a thread
    /// holds the lock, the flag keeps the last holder from leaving while the chain is locked. And a
    /// lock that is free while readers wait has a woken writer, since otherwise the readers would
    /// have been chosen when it became free.
    fn choose(chain: &Locked<'_>, rest: u64, after_writer: bool) -> Self {
        let to_write = |w: &Waiter| w.role() != TO_READ;
        let one_writer = || chain.take_first(|w| to_write(w) && w.claim());
        let no_writer =
            || rest & WOKEN == 0 && !chain.iter().any(|w| to_write(w) && !w.is_leaving());

        let is_free = rest < READER && rest & (WRITER | WOKEN) == 0;
        let mut handoff = Self::NONE;
        if is_free && !after_writer {
            handoff.batch = one_writer();
        }
        // After the attempt above: a writer that held the lock may be leaving now.
        let of_readers = after_writer || handoff.batch.len == 0 && no_writer();
        if rest & WRITER == 0 && rest & READERS_WAIT != 0 && of_readers {
            handoff.batch = chain.take_all(|w| !to_write(w) && w.claim());
            handoff.flags_to_clear |= READERS_WAIT;
        }
        if is_free && handoff.batch.len == 0 {
            handoff.batch = one_writer();
        }
        if handoff.batch.role().is_none_or(|role| role == TO_READ) && no_writer() {
            handoff.flags_to_clear |= WRITERS_WAIT;
        }
        handoff
    }
}

/// Tries for about as long as a short section takes.
fn spin(mut attempt: impl FnMut() -> bool) -> bool {
    (0..tuning::polls()).any(|_| {
        hint::pause();
        attempt()
    })
}

//! Waiting until another thread signals: the algorithm of a condition variable.
//!
//! # Idea
//!
//! A list of waiters in order of arrival. A waiter's record, the [`Waiter`], is on its own stack
//! and has a word of its own on which to sleep. So a signal wakes exactly the thread for which it
//! is meant. A caller adds its record to the list *while it still holds the mutex*, releases the
//! mutex and parks. A thread that changes the awaited condition afterwards finds the record on the
//! list, whether the waiter sleeps yet or not.
//!
//! It takes some microseconds to wake a thread, and several times as long until the thread runs.
//! So, if recent signals have come within that time, a waiter polls for a while before it sleeps.
//! The list counts such signals. Signallers update the count, because a waiter that has been
//! signalled may not access the list.
//!
//! ```
//! use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
//! use manycore::lock::{Futex, PlainLock, WaitQueue, Waiter};
//!
//! static MUTEX: Futex = Futex::new();
//! static CHANGED: WaitQueue = WaitQueue::new();
//! static DONE: AtomicBool = AtomicBool::new(false); // only touched with the mutex held
//!
//! std::thread::scope(|s| {
//!     s.spawn(|| {
//!         MUTEX.acquire();
//!         DONE.store(true, Relaxed);
//!         unsafe { MUTEX.release() }; // SAFETY: acquired above, by this thread
//!         CHANGED.signal();
//!     });
//!
//!     MUTEX.acquire();
//!     while !DONE.load(Relaxed) {
//!         let waiter = Waiter::new();
//!         // SAFETY: the mutex is held; the waiter lives until it has been signalled.
//!         unsafe {
//!             CHANGED.enqueue(&waiter);
//!             MUTEX.release();
//!         }
//!         waiter.park(None);
//!         unsafe { waiter.wake_next() }; // SAFETY: `park` has seen the signal
//!         MUTEX.acquire();
//!     }
//!     unsafe { MUTEX.release() }; // SAFETY: acquired above, by this thread
//! });
//! ```
//!
//! # Source
//!
//! The algorithm is ours. Each waiter has an object of its own on which to sleep, in a list in
//! order of arrival. That is the advice of A. D. Birrell, "Implementing Condition Variables with
//! Semaphores", 2003, who also explains how simple implementations fail.
//!
//! # Whose memory, until when
//!
//! A condition variable may be destroyed, and its memory reused, as soon as all its waiters have
//! been woken, although they may not have run yet. So a thread that has been signalled does not
//! access the queue again, and a signaller unlocks the queue before it marks a waiter as signalled.
//! Only a waiter that leaves by itself, by a time-out or because its thread is cancelled, accesses
//! the queue; a thread that destroys the queue waits for those with [`drain`](WaitQueue::drain).
//!
//! # Fork
//!
//! In the child of a fork, neither the waiters on the list exist nor a thread that held the list's
//! lock, and their stacks are memory for new threads. So the lock's word contains, in addition to
//! its state, the *generation* of the process, which a fork increments in the child. The child's
//! first use of the queue finds an older generation: it takes the lock whatever its state is, and
//! empties the list.
//!
//! # Memory order
//!
//! The list is ordered by its lock: a thread that locks it (Acquire) sees all writes before it was
//! unlocked (Release). The page of [`Waiter`] has the orderings for a signal and for the waiter's
//! own exit.
//!
//! # Cost
//!
//! A wait: the list's lock, an *or*, and a sleep. A signal without waiters: one load. A signal with
//! one waiter: the list's lock, two *or*s, and a wake-up unless the waiter does not sleep yet. A
//! broadcast wakes eight waiters, and each of these wakes another one.
//!
//! # When not to use it
//!
//! Between processes: the list is one of addresses.

use super::waiter::Waiter;
use super::waiter::chain::{Batch, Chain, End, Locked};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{const_new, futex, hint, mortal, order, process};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and a thread may sleep until it is free.
const CONTENDED: u32 = 2;
/// The lowest bits of the lock's word are one of the states above, the others the generation.
const STATE_BITS: u32 = 2;
const STATE: u32 = (1 << STATE_BITS) - 1;

/// The word for a state in this process.
fn now(state: u32) -> u32 {
    (process::generation() << STATE_BITS) | state
}

/// The waiters of one condition variable. If all bytes are zero, there are none.
#[derive(Debug)]
pub struct WaitQueue {
    lock: AtomicU32,
    /// Changed with the chain locked.
    learned: AtomicU32,
    chain: Chain,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<WaitQueue>() <= 24, "it has to leave room in a pthread_cond_t");

impl WaitQueue {
    const_new! {
        /// A queue without waiters.
        pub fn new() -> Self {
            Self { lock: AtomicU32::new(FREE), learned: AtomicU32::new(0), chain: Chain::new() }
        }
    }

    /// Adds a waiter to the end of the queue. The caller holds the mutex that protects the awaited
    /// condition.
    ///
    /// # Safety
    ///
    /// The waiter is new. It does not move until [`park`](Waiter::park) has returned true or
    /// [`withdraw`](Self::withdraw) has returned. Neither does the queue, unless it is drained
    /// before.
    pub unsafe fn enqueue(&self, waiter: &Waiter) {
        self.with_chain(|chain| {
            if self.learned().polls() {
                waiter.ask_to_poll();
            }
            self.learn(Learned::and_wait);
            // SAFETY: the waiter is new, and stays until `park` has returned true, which is after
            // the mark, or `withdraw` has removed it (contract of this function).
            unsafe { chain.push(waiter, End::Tail) };
        });
    }

    /// Withdraws a waiter whose `park` has returned false, or did not return; returns whether it
    /// came before a signal.
    ///
    /// False means that the waiter has been signalled. Then the caller has to act on the signal, or
    /// to signal another waiter.
    ///
    /// # Safety
    ///
    /// The waiter was put on this queue, and this is its first `withdraw`.
    pub unsafe fn withdraw(&self, waiter: &Waiter) -> bool {
        let in_time = waiter.leave();
        if in_time {
            // SAFETY: `leave` came before any claim, so that no signaller takes the waiter off: it
            // is on the chain. The queue is there, since its owner drains it before destroying it,
            // and that waits for this.
            self.with_chain(|chain| unsafe { chain.remove(waiter) });
        }
        in_time
    }

    /// Wakes a waiter; returns whether there was one. Usually it is the one that has waited for
    /// longest. But if the last one is still awake, fifteen signals out of sixteen go to that one.
    pub fn signal(&self) -> bool {
        self.signal_saying(|| 0)
    }

    /// Does the same as [`signal`](Self::signal). If other waiters remain, `message` is the woken
    /// waiter's [message](Waiter::message); it is below [`MESSAGES`](Waiter::MESSAGES). The last
    /// waiter gets 0, and so does a waiter that is woken by a [`broadcast`](Self::broadcast). The
    /// chain is locked meanwhile.
    pub fn signal_saying(&self, message: impl FnOnce() -> u32) -> bool {
        // A signaller only has to find waiters that it can know about. It changed the awaited
        // condition under their mutex. A waiter that had checked the condition before the change
        // put itself on the chain before it released the mutex; that happens before this search,
        // which therefore finds it. A waiter that checks later does not wait.
        if self.chain.looks_empty() {
            return false;
        }
        let (chosen, message) = self.with_chain(|chain| {
            let claim = |waiter: &Waiter| self.claim(waiter);
            let awake = if self.learned().is_patient() {
                chain.take_awake_last(claim)
            } else {
                Batch::NONE
            };
            let chosen = if awake.len == 0 { chain.take_first(claim) } else { awake };
            let others_wait = chosen.len != 0 && chain.iter().next().is_some();
            (chosen, if others_wait { message() } else { 0 })
        });
        let is_any = chosen.len > 0;
        // SAFETY: `take_first` or `take_all` has claimed the waiters and taken them off, and
        // `with_chain` has unlocked the chain.
        unsafe { chosen.mark(message) };
        is_any
    }

    /// Wakes eight waiters. Each of them is to wake another, by [`wake_next`](Waiter::wake_next),
    /// before it acquires the mutex. Together, these threads wake all waiters. Returns whether
    /// there were any.
    ///
    /// A waiter that leaves, because its deadline has passed or its thread is cancelled, may have
    /// to wait for those before it.
    pub fn broadcast(&self) -> bool {
        // As in `signal`.
        if self.chain.looks_empty() {
            return false;
        }
        let chosen = self.with_chain(|chain| chain.take_all(|waiter| self.claim(waiter)));
        let is_any = chosen.len > 0;
        // SAFETY: `take_all` has claimed the waiters and taken them off, and `with_chain` has
        // unlocked the chain.
        unsafe { chosen.mark_in_rows() };
        is_any
    }

    /// Waits until the queue is empty: to be called before its memory is used for something else.
    ///
    /// A thread that destroys a condition variable has woken its waiters. Waiters that were about
    /// to leave by themselves may still have to remove themselves from the queue.
    pub fn drain(&self) {
        let mut pause_ns = 1_000;
        while self.with_chain(|chain| chain.iter().next().is_some()) {
            hint::sleep(pause_ns);
            pause_ns = (pause_ns * 2).min(1_000_000);
        }
    }

    fn claim(&self, waiter: &Waiter) -> bool {
        let is_claimed = waiter.claim();
        if is_claimed {
            self.learn(|learned| learned.and_signal(!waiter.is_asleep()));
        }
        is_claimed
    }

    fn learned(&self) -> Learned {
        Learned(self.learned.load(Ordering::Relaxed)) // Relaxed: the chain's lock orders it
    }

    fn learn(&self, change: impl FnOnce(Learned) -> Learned) {
        self.learned.store(change(self.learned()).0, Ordering::Relaxed); // Relaxed: as above
    }

    /// Calls a function with the chain locked. Does not access the queue after it has unlocked the
    /// chain.
    pub(super) fn with_chain<R>(&self, f: impl FnOnce(&Locked) -> R) -> R {
        let stale = self.lock();
        // SAFETY: `lock` has just taken the word, and `unlock` gives it back after the last use of
        // the chain.
        let chain = unsafe { self.chain.locked() };
        if stale {
            chain.clear();
        }
        let result = f(&chain);
        self.unlock();
        result
    }

    /// Locks the chain; returns whether its contents are of an older generation.
    fn lock(&self) -> bool {
        let mut taken = now(HELD);
        // Relaxed: the compare-and-swap decides and orders.
        let mut word = self.lock.load(Ordering::Relaxed);
        loop {
            let stale = word & !STATE != now(FREE);
            if !stale && word & STATE != FREE {
                word = self.sleep(word);
                taken = now(CONTENDED); // as in `lock::Futex`: others may sleep on
                continue;
            }
            // Acquire: partner of the Release in `unlock`. Relaxed on failure: nothing was
            // acquired.
            let acquire = order!(Acquire, "queue-lock-acquire");
            match self.lock.compare_exchange(word, taken, acquire, Ordering::Relaxed) {
                Ok(_) => return stale,
                Err(changed) => word = changed,
            }
        }
    }

    /// Sleeps while the word says that the lock is held and contended; returns the new word.
    #[cold]
    fn sleep(&self, word: u32) -> u32 {
        let contended = now(CONTENDED);
        // Relaxed, all three: nothing is acquired here.
        if word != contended {
            let marked =
                self.lock.compare_exchange(word, contended, Ordering::Relaxed, Ordering::Relaxed);
            if let Err(changed) = marked {
                return changed;
            }
        }
        futex::wait(&self.lock, contended, None);
        self.lock.load(Ordering::Relaxed)
    }

    fn unlock(&self) {
        let address = &raw const self.lock;
        // Release: partner of the Acquire in `lock`. From here on the queue may be gone.
        let before = self.lock.swap(now(FREE), order!(Release, "queue-unlock-release"));
        if before & STATE == CONTENDED {
            futex::wake(address, 1);
        }
    }
}

/// The recent results of polling for a signal: the low four bits are their amount, the others the
/// number of waits. If all are zero, nothing is known.
#[derive(Clone, Copy)]
struct Learned(u32);

impl Learned {
    const PAID: u32 = 15;
    /// A poll that ends with the signal costs half of what it saves.
    const SUCCESS: u32 = 2;
    const WAIT: u32 = 16;
    /// One wait in this many polls to find out whether polling is worth its cost now, and one
    /// signal in as many goes to the oldest waiter.
    const ROUND: u32 = 16;

    fn paid(self) -> u32 {
        self.0 & Self::PAID
    }

    fn in_round(self) -> u32 {
        self.0 / Self::WAIT % Self::ROUND
    }

    /// Whether the next waiter is to poll before it sleeps.
    fn polls(self) -> bool {
        self.paid() > 0 || self.in_round() == 0
    }

    /// Whether the eldest can wait once more.
    fn is_patient(self) -> bool {
        self.in_round() != 0
    }

    fn and_wait(self) -> Self {
        Self(self.0.wrapping_add(Self::WAIT))
    }

    fn and_signal(self, awake: bool) -> Self {
        let paid = match awake {
            true => (self.paid() + Self::SUCCESS).min(Self::PAID),
            false => self.paid().saturating_sub(1),
        };
        Self(self.0 & !Self::PAID | paid)
    }
}

impl Default for WaitQueue {
    fn default() -> Self {
        Self::new()
    }
}

mortal!(WaitQueue { lock });

//! `parking-lot`: a word of two bits, and a queue in a hash table that all locks of the process
//! share.
//!
//! # Idea
//!
//! The word says whether the lock is held, and whether a thread is *parked*. A waiter polls a few
//! times: after 2, 4 and 8 pauses, then after each of seven yields of its CPU. It stops as soon as
//! a thread is parked. Then it sets the second bit and parks: it goes to the end of a queue in a
//! table, whose bucket is chosen by the lock's address, and sleeps on a word of its own. A release
//! that finds the bit wakes the lock's first parked thread. Meanwhile the lock is free, for the
//! next thread that comes.
//!
//! # Source
//!
//! A. d'Antras, `parking_lot`, 2016, after the `WTF::ParkingLot` of WebKit (F. Pizlo, "Locking in
//! WebKit", 2016): written anew here after its description. There a bucket hands the lock over,
//! rather than freeing it, when up to a millisecond has passed since its last hand-over; here at
//! every thousandth wake-up. There the table grows with the number of threads; here it has 256
//! buckets.
//!
//! # Fork
//!
//! A bucket is a [`WaitQueue`], which forgets the parent's waiters in the child.
//!
//! # Memory order
//!
//! A release (Release) is read by the compare-and-swap that acquires (Acquire), or by the thread
//! that is handed the lock, through its record as described at [`Waiter`]. No wake-up is lost: a
//! thread parks only if the word says *held* and *parked* while the bucket is locked, and both
//! marks together are removed only with the bucket locked. So a release either comes before, and
//! the waiter finds the word changed, or finds the waiter in the queue.
//!
//! # Cost
//!
//! Uncontended: two compare-and-swaps. Contended: in addition to sleeping and waking, the lock of a
//! bucket on each side. All threads that park at one lock contend for the same bucket.
//!
//! # When not to use it
//!
//! With many CPUs and one lock that is always contended: the bucket's lock is the next bottleneck.

use super::plain::{PlainLock, waits_with_deadline, without_node};
use super::wait_queue::WaitQueue;
use super::waiter::Waiter;
use super::waiter::chain::End;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{CachePadded, Deadline, const_new, hint, order, process_wide, table, tuning};
use crate::{LockInfo, Order};

const LOCKED: u32 = 1;
/// A thread is in the queue, or about to join it.
const PARKED: u32 = 2;

/// How many rounds a waiter polls before it parks, and how many of these pause rather than yield.
const ROUNDS: u32 = 10;
const PAUSING_ROUNDS: u32 = 3;

/// The message to a parked thread that has been handed the lock.
const HANDED_OVER: u32 = 1;

/// A bucket of the table: the waiters of all locks whose addresses lead to this bucket.
#[derive(Debug)]
struct ParkedThreads {
    queue: WaitQueue,
    /// Wake-ups since a lock was last handed over. This is changed only with the queue locked,
    /// which orders it.
    wakes: AtomicU32,
}

impl ParkedThreads {
    const_new! {
        fn new() -> Self {
            Self { queue: WaitQueue::new(), wakes: AtomicU32::new(0) }
        }
    }

    /// Counts a wake-up; returns whether it has to hand the lock over. The queue is locked.
    fn is_fair_turn(&self) -> bool {
        let wakes = self.wakes.load(Ordering::Relaxed); // Relaxed: as above
        let fair = wakes >= tuning::passes();
        self.wakes.store(if fair { 0 } else { wakes + 1 }, Ordering::Relaxed); // Relaxed: as above
        fair
    }
}

process_wide! {
    /// All buckets.
    fn buckets() -> [CachePadded<ParkedThreads>; 256] of CachePadded(ParkedThreads::new()), named Buckets
}

/// How a thread that wanted to park came back.
enum Parked {
    HandedOver,
    Woken,
    /// The lock was not held, or the word did not announce a parked thread: the thread did not
    /// park.
    Not,
    TimedOut,
}

/// The mutex of `parking_lot`.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct ParkingLot {
    state: AtomicU32,
}

impl ParkingLot {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self { state: AtomicU32::new(0) }
        }
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    fn bucket(address: usize) -> &'static ParkedThreads {
        let buckets = buckets();
        let hash = table::hash(address as u64) >> 48;
        &buckets[hash as usize % buckets.len()]
    }

    fn poll(&self) -> u32 {
        self.state.load(Ordering::Relaxed) // Relaxed: the compare-and-swap that follows decides and orders
    }

    /// Takes a lock that is free according to this state; returns the present state if that has
    /// changed.
    #[inline]
    fn take(&self, state: u32) -> Result<u32, u32> {
        // Acquire: partner of the Release in `release`. Relaxed on failure: nothing was acquired.
        let acquire = order!(Acquire, "parking-acquire");
        self.state.compare_exchange(state, state | LOCKED, acquire, Ordering::Relaxed)
    }

    /// Says whether the lock was acquired before the deadline.
    fn wait(&self, deadline: Option<Deadline>) -> bool {
        let mut round = 0;
        let mut state = self.poll();
        loop {
            if state & LOCKED == 0 {
                match self.take(state) {
                    Ok(_) => return true,
                    Err(changed) => state = changed,
                }
                continue;
            }
            if state & PARKED == 0 {
                if spin(&mut round) {
                    state = self.poll();
                    continue;
                }
                // Relaxed, both: says only that a thread is about to park.
                let (marked, relaxed) = (state | PARKED, Ordering::Relaxed);
                if let Err(changed) = self.state.compare_exchange(state, marked, relaxed, relaxed) {
                    state = changed;
                    continue;
                }
            }
            match self.park(deadline) {
                Parked::HandedOver => return true,
                Parked::TimedOut => return false,
                Parked::Woken | Parked::Not => (round, state) = (0, self.poll()),
            }
        }
    }

    fn park(&self, deadline: Option<Deadline>) -> Parked {
        let address = self.address();
        let bucket = Self::bucket(address);
        let waiter = Waiter::with_role(address);
        let joined = bucket.queue.with_chain(|chain| {
            let is_held = self.poll() == LOCKED | PARKED;
            if is_held {
                // SAFETY: the waiter is new, and does not go out of scope before it has been
                // marked, or removed below.
                unsafe { chain.push(&waiter, End::Tail) };
            }
            is_held
        });
        if !joined {
            return Parked::Not;
        }
        if !waiter.park(deadline) && waiter.leave() {
            bucket.queue.with_chain(|chain| {
                // SAFETY: no thread has claimed the waiter or will, so it is on the chain.
                unsafe { chain.remove(&waiter) };
                if !chain.iter().any(|other| other.role() == address) {
                    self.state.fetch_and(!PARKED, Ordering::Relaxed); // Relaxed: as where it is set
                }
            });
            return Parked::TimedOut;
        }
        // A deadline that has passed meanwhile does not count: the wake-up was meant for a thread
        // that wants the lock.
        match waiter.message() {
            HANDED_OVER => Parked::HandedOver,
            _ => Parked::Woken,
        }
    }

    /// Releases the lock, and wakes the first parked thread.
    #[cold]
    fn release_parked(&self) {
        let address = self.address();
        let bucket = Self::bucket(address);
        let (chosen, message) = bucket.queue.with_chain(|chain| {
            let chosen = chain.take_first(|waiter| waiter.role() == address && waiter.claim());
            let more = chain.iter().any(|other| other.role() == address);
            let hands_over = chosen.len > 0 && bucket.is_fair_turn();
            let parked = if more { PARKED } else { 0 };
            let locked = if hands_over { LOCKED } else { 0 };
            // Release: partner of the Acquire in `take`. From here on the lock may be gone.
            self.state.store(parked | locked, order!(Release, "parking-wake-release"));
            (chosen, if hands_over { HANDED_OVER } else { 0 })
        });
        // SAFETY: `take_first` has claimed the waiters and taken them off, and `with_chain` has
        // unlocked the chain.
        unsafe { chosen.mark(message) };
    }
}

/// Passes some time, in one of the rounds; returns false if there is no round left.
fn spin(round: &mut u32) -> bool {
    if *round >= tuning::rounds_of(ROUNDS) {
        return false;
    }
    *round += 1;
    match *round {
        1..=PAUSING_ROUNDS => (0..1_u32 << *round).for_each(|_| hint::pause()),
        _ => hint::yield_now(),
    }
    true
}

// SAFETY: only one thread's compare-and-swap sets `LOCKED`, or it is left set for one thread that
// gets a message; `release` clears it. Four bytes, and zero is free with no parked thread.
unsafe impl PlainLock for ParkingLot {
    const INFO: LockInfo = LockInfo {
        name: "parking-lot",
        summary: "looks and yields for ten rounds, then queues in a hash table keyed by address",
        source: "d'Antras, parking_lot, 2016",
        order: Order::Barging,
        blocks: true,
    };

    #[inline]
    fn try_acquire(&self) -> bool {
        let state = self.poll();
        state & LOCKED == 0 && self.take(state).is_ok()
    }

    waits_with_deadline!();

    #[inline]
    unsafe fn release(&self) {
        // Release: partner of the Acquire in `take`. Relaxed on failure: a thread is parked, and
        // nothing is released here.
        let release = order!(Release, "parking-release");
        if self.state.compare_exchange(LOCKED, 0, release, Ordering::Relaxed).is_err() {
            self.release_parked();
        }
    }
}

without_node!(ParkingLot);

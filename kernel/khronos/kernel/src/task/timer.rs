//! Threads that wait for a time. Resolution: a tick of the CPUs' timers, 10 ms.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use super::sched;
use super::thread::Thread;
use crate::arch::tsc;
use crate::sync::order::Rank;
use crate::sync::spin::IrqSpin;

/// Deadline, and a number that no other timer has.
pub type Timer = (u64, u64);

static TIMERS: IrqSpin<BTreeMap<Timer, Arc<Thread>>> =
    IrqSpin::new(Rank::Timers, BTreeMap::new());
/// The first deadline; a look at it spares the lock.
static FIRST: AtomicU64 = AtomicU64::new(u64::MAX);
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Whether the moment, in nanoseconds since boot, has come.
pub fn has_passed(deadline: u64) -> bool {
    tsc::now() >= deadline
}

/// The thread is woken at the deadline.
pub fn set(deadline: u64, thread: Arc<Thread>) -> Timer {
    let timer = (deadline, NUMBERS.fetch_add(1, Ordering::Relaxed)); // Relaxed: a number
    let mut timers = TIMERS.lock();
    timers.insert(timer, thread);
    FIRST.fetch_min(deadline, Ordering::Relaxed); // Relaxed: a tick later is early enough
    timer
}

/// It need not be.
pub fn withdraw(timer: Timer) {
    TIMERS.lock().remove(&timer);
}

/// Wakes those whose time has come. Called at each tick.
pub fn expire() {
    let now = tsc::now();
    if now < FIRST.load(Ordering::Relaxed) { // Relaxed: a hint
        return;
    }
    let mut timers = TIMERS.lock();
    while let Some(first) = timers.first_entry() {
        if first.key().0 > now {
            break;
        }
        sched::wake(&first.remove());
    }
    let next = timers.first_key_value().map_or(u64::MAX, |(timer, _)| timer.0);
    FIRST.store(next, Ordering::Relaxed); // Relaxed: under the lock
}

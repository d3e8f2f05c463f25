//! Threads and alarms that wait for a time. Resolution: a tick of the CPUs' timers, 10 ms.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use super::process::Process;
use super::sched;
use super::thread::Thread;
use crate::arch::tsc;
use crate::sync::order::Rank;
use crate::sync::spin::IrqSpin;

/// Deadline, and a number that no other timer has.
pub type Timer = (u64, u64);

/// Who waits.
pub enum Target {
    /// A thread, which is woken.
    Thread(Arc<Thread>),
    /// A process, which gets the signal of its alarm.
    Alarm(Arc<Process>),
}

static TIMERS: IrqSpin<BTreeMap<Timer, Target>> = IrqSpin::new(Rank::Timers, BTreeMap::new());
/// The first deadline. Reading it is cheaper than taking the lock.
static FIRST: AtomicU64 = AtomicU64::new(u64::MAX);
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Whether the moment, in nanoseconds since boot, has come.
pub fn has_passed(deadline: u64) -> bool {
    tsc::now() >= deadline
}

/// The target is told at the deadline.
pub fn set(deadline: u64, target: Target) -> Timer {
    let timer = (deadline, NUMBERS.fetch_add(1, Ordering::Relaxed)); // Relaxed: a number
    let mut timers = TIMERS.lock();
    timers.insert(timer, target);
    FIRST.fetch_min(deadline, Ordering::Relaxed); // Relaxed: a tick later is early enough
    timer
}

/// It need not be.
pub fn withdraw(timer: Timer) {
    TIMERS.lock().remove(&timer);
}

/// Wakes the threads whose deadline has passed. Called at each tick.
pub fn expire() {
    let now = tsc::now();
    if now < FIRST.load(Ordering::Relaxed) {
        // Relaxed: a hint
        return;
    }
    while let Some(target) = take_due(now) {
        match target {
            Target::Thread(thread) => {
                sched::wake(&thread);
            }
            Target::Alarm(process) => process.alarm_is_due(now),
        }
    }
}

fn take_due(now: u64) -> Option<Target> {
    let mut timers = TIMERS.lock();
    let next = timers.first_key_value().map_or(u64::MAX, |(timer, _)| timer.0);
    if next <= now {
        return timers.pop_first().map(|(_, target)| target);
    }
    FIRST.store(next, Ordering::Relaxed); // Relaxed: under the lock
    None
}

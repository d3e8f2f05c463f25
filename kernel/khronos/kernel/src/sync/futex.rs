//! Sleeping on a word of memory, of the kernel's or of a program's.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::order::Rank;
use super::pin::pin;
use super::spin::IrqSpin;
use super::wait::{Early, Patience, sleep_unless};
use crate::task::thread::{self, Thread};
use crate::task::{sched, signal, timer};

/// The key of a wait: a space (0 for the kernel) and an address in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// The address space's number; 0 for the kernel, and for memory that address spaces share.
    pub space: u64,
    /// The address; of shared memory the physical one.
    pub address: u64,
}

struct Waiter {
    key: Key,
    bits: u32,
    thread: Arc<Thread>,
}

const BUCKETS: usize = 256;

#[repr(align(128))]
struct Bucket(IrqSpin<Vec<Waiter>>);

static TABLE: [Bucket; BUCKETS] =
    [const { Bucket(IrqSpin::new(Rank::Futex, Vec::new())) }; BUCKETS];

fn bucket(key: Key) -> &'static IrqSpin<Vec<Waiter>> {
    let mixed = (key.address ^ key.space.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &TABLE[(mixed >> 56) as usize % BUCKETS].0
}

/// Sleeps once on the key if `is_unchanged` returns true. That function is called pinned, and must
/// not sleep. The sleep ends when another thread [wakes](wake) a set of bits that shares one with
/// `bits`, by [`Early`], or without cause. Returns `None` if the value was changed.
pub fn wait(
    key: Key,
    bits: u32,
    patience: Patience,
    is_unchanged: impl FnOnce() -> bool,
) -> Option<Result<(), Early>> {
    let this = thread::current_arc();
    let pin = pin();
    sched::prepare_to_sleep(&this, patience.signals);
    bucket(key).lock().push(Waiter { key, bits, thread: this.clone() });
    // On the list first, then the check: a thread that changes the word afterwards finds this
    // thread there.
    let ended = sleep_unless(&this, patience, || (!is_unchanged()).then_some(()));
    drop(pin);
    let was_woken = !withdraw(key, &this);
    match ended {
        _ if was_woken => Some(Ok(())),
        Some(Ok(())) => None,
        Some(Err(early)) => Some(Err(early)),
        None => match patience.deadline {
            Some(deadline) if timer::has_passed(deadline) => Some(Err(Early::Deadline)),
            _ if patience.signals && signal::is_due() => Some(Err(Early::Signal)),
            _ => Some(Ok(())),
        },
    }
}

fn withdraw(key: Key, thread: &Arc<Thread>) -> bool {
    let mut waiters = bucket(key).lock();
    let place = waiters.iter().position(|waiter| Arc::ptr_eq(&waiter.thread, thread));
    place.map(|place| waiters.remove(place)).is_some()
}

/// Wakes at most `count` threads that wait on the key with one of the bits, those that have waited
/// longest first; returns their number.
pub fn wake(key: Key, bits: u32, count: u32) -> u32 {
    let mut woken = 0;
    while woken < count {
        let mut waiters = bucket(key).lock();
        let is_one = |waiter: &Waiter| waiter.key == key && waiter.bits & bits != 0;
        let Some(first) = waiters.iter().position(is_one) else { break };
        let waiter = waiters.remove(first);
        drop(waiters);
        sched::wake(&waiter.thread);
        woken += 1;
    }
    woken
}

/// Wakes at most `count` threads that wait on the key, and then `more` others that should be moved
/// to another key. Those wake up without cause, which is allowed, and then wait on the other key by
/// themselves. Returns the number of woken threads.
pub fn requeue(key: Key, count: u32, more: u32) -> u32 {
    wake(key, !0, count.saturating_add(more))
}

//! Spinning locks: for data that are accessed for a moment, and on the way to sleeping.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use manycore::lock::{PlainLock, Ttas};

use super::order::Rank;
use crate::arch::{cpu, msr};
use crate::sync::pin;
use crate::watch::counters::{Event, count};

/// The other contexts that may take the lock.
pub trait Mode {
    /// Whether interrupt handlers take it: then they are off while it is held.
    const INTERRUPTS_OFF: bool;
}

/// Threads only.
pub struct Threads;
/// Interrupt handlers too.
pub struct Interrupts;

impl Mode for Threads {
    const INTERRUPTS_OFF: bool = false;
}
impl Mode for Interrupts {
    const INTERRUPTS_OFF: bool = true;
}

/// A value with a lock for which waiters spin. Its owner is pinned.
///
/// The lock allows barging. CPUs of virtual machines are preempted, and in a queue lock all waiters
/// would wait for one that is.
pub struct Spinning<T, M: Mode> {
    lock: Ttas,
    rank: Rank,
    mode: PhantomData<M>,
    value: UnsafeCell<T>,
}

/// For threads.
pub type Spin<T> = Spinning<T, Threads>;
/// For threads and interrupt handlers.
pub type IrqSpin<T> = Spinning<T, Interrupts>;

// SAFETY: `lock` gives out one `Guard` at a time, by which alone the value is reached; it may be
// another thread's each time (`T: Send`).
unsafe impl<T: Send, M: Mode> Sync for Spinning<T, M> {}
// SAFETY: a lock that moves is not borrowed, so there is no `Guard`; the value goes to the other
// thread (`T: Send`).
unsafe impl<T: Send, M: Mode> Send for Spinning<T, M> {}

impl<T, M: Mode> Spinning<T, M> {
    /// An unlocked one.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self { lock: Ttas::new(), rank, mode: PhantomData, value: UnsafeCell::new(value) }
    }

    /// Takes the lock.
    #[track_caller]
    pub fn lock(&self) -> Guard<'_, T, M> {
        let interrupts = M::INTERRUPTS_OFF && msr::interrupts_off();
        cpu::pin();
        cpu::this().held.take(self.rank, self.address());
        if !self.lock.try_acquire() {
            count(Event::SpinWaits);
            self.lock.acquire_contended();
        }
        Guard { lock: self, interrupts, _not_send: PhantomData }
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(&self.lock).addr()
    }
}

/// The lock is held.
pub struct Guard<'a, T, M: Mode> {
    lock: &'a Spinning<T, M>,
    interrupts: bool,
    _not_send: PhantomData<*mut ()>,
}

impl<T, M: Mode> Drop for Guard<'_, T, M> {
    fn drop(&mut self) {
        cpu::this().held.release(self.lock.address());
        // SAFETY: `lock` has acquired it for this `Guard`, which releases it here only.
        unsafe { self.lock.lock.release() };
        if self.interrupts {
            msr::interrupts_enable();
        }
        pin::unpin();
    }
}

impl<T, M: Mode> Deref for Guard<'_, T, M> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `lock` has acquired the lock, and the `Guard` keeps it until it is dropped.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T, M: Mode> DerefMut for Guard<'_, T, M> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: `lock` has acquired the lock, the `Guard` keeps it until it is dropped, and it is
        // borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}
